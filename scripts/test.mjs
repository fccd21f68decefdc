// npm test: native tests, unit and integration tests, tests in a real window. Closes with "N passed, N failed".
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { electronProgram } from './setup/electron.mjs';
import { setUp } from './setup/index.mjs';
import { engineBuildDir, root } from './setup/paths.mjs';
import { runSteps } from './steps.mjs';

const hasWindow = existsSync(join(root, 'main/main.ts'));
await setUp(hasWindow ? ['engineTests', 'electron'] : ['engineTests']);

// Colours would stand between the words that are counted.
const plain = { NO_COLOR: '1', FORCE_COLOR: '0' };
const number = (text) => Number(text ?? 0);

function countCtest(output) {
  const match = /(\d+) tests? failed out of (\d+)/.exec(output);
  return match ? { failed: number(match[1]), passed: number(match[2]) - number(match[1]) } : undefined;
}
function countVitest(output) {
  const line = /^\s*Tests\s+(.*)$/m.exec(output)?.[1];
  if (line === undefined) return undefined;
  return { passed: number(/(\d+) passed/.exec(line)?.[1]), failed: number(/(\d+) failed/.exec(line)?.[1]) };
}
function countPlaywright(output) {
  const atOnce = number(/^\s*(\d+) passed/m.exec(output)?.[1]);
  // Passed on the second try, in CI alone: named above by the runner.
  const passed = atOnce + number(/^\s*(\d+) flaky/m.exec(output)?.[1]);
  const failed = number(/^\s*(\d+) failed/m.exec(output)?.[1]);
  return passed + failed > 0 ? { passed, failed } : undefined;
}

const steps = [
  {
    name: 'native',
    program: ['ctest', '--test-dir', engineBuildDir, '--output-on-failure', '--no-tests=error'],
    timeoutMs: 300_000,
    count: countCtest,
  },
  {
    name: 'unit and integration',
    node: [join(root, 'node_modules/vitest/vitest.mjs'), 'run'],
    timeoutMs: 420_000,
    env: plain,
    count: countVitest,
  },
];
if (hasWindow) {
  const playwright = [join(root, 'node_modules/@playwright/test/cli.js'), 'test'];
  const { buildApp } = await import('./startApp.mjs');
  const built = await buildApp();
  const env = { ...plain, TESSERA_ELECTRON_PROGRAM: electronProgram() };
  const display = process.env.DISPLAY ? [] : ['xvfb-run', '-a', '-s', '-screen 0 1600x1000x24'];
  const { node24 } = await import('./setup/paths.mjs');
  steps.push({ name: 'app build', program: [built === 0 ? 'true' : 'false'], timeoutMs: 1000 });
  if (built === 0) {
    steps.push({
      name: 'window',
      program: [...display, node24(), ...playwright],
      timeoutMs: 900_000,
      env,
      count: countPlaywright,
    });
  }
}
const { passed, failed } = await runSteps(steps);
process.stdout.write(`\n${passed} passed, ${failed} failed\n`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
