// npm run check: what CI checks besides tests. Each step names the command that repeats it alone.
import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { runSteps } from './steps.mjs';
import { setUp } from './setup/index.mjs';
import { root } from './setup/paths.mjs';

await setUp(['packages', 'format']);
const tool = (path, ...args) => ({ node: [join(root, 'node_modules', path), ...args] });
const nativeSources = execFileSync('git', ['ls-files', '*.cpp', '*.h', '*.cu', '*.cuh'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((path) => /^(native|tests\/native)\//.test(path));

const steps = [
  // The longest first: the others go beside it.
  { name: 'lint', ...tool('eslint/bin/eslint.js', '.', '--max-warnings=0'), timeoutMs: 420_000 },
  { name: 'types', ...tool('vue-tsc/bin/vue-tsc.js', '--noEmit'), timeoutMs: 300_000 },
  {
    name: 'format',
    ...tool('prettier/bin/prettier.cjs', '--check', '--log-level=warn', '.'),
    timeoutMs: 120_000,
  },
  {
    name: 'native format',
    program: ['clang-format', '--dry-run', '--Werror', ...nativeSources],
    timeoutMs: 120_000,
  },
  { name: 'documents', node: [join(root, 'scripts/checkDocs.mjs')], timeoutMs: 30_000 },
  { name: 'dead code', ...tool('knip/bin/knip.js'), timeoutMs: 180_000 },
];
const { failed } = await runSteps(steps, Math.min(2, availableParallelism()));
process.exitCode = failed > 0 ? 1 : 0;
