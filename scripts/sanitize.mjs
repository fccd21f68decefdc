// The native tests with the address and undefined-behaviour sanitizers, in a build folder of their own.
import { cpus } from 'node:os';
import { join } from 'node:path';
import { runProgram } from './run.mjs';
import { logDir, root } from './setup/paths.mjs';
import { runLogged } from './setup/report.mjs';

const folder = join(root, 'build/sanitized');
const common = { cwd: root, timeoutMs: 15 * 60_000, command: 'cmake' };
await runLogged({
  ...common,
  label: 'Sanitized engine, configuring:',
  args: [
    ...['-S', '.', '-B', folder, '-G', 'Ninja', '-DTESSERA_SANITIZE=ON', '-DTESSERA_CUDA=OFF'],
    ...['-DCMAKE_BUILD_TYPE=Debug', '-DCMAKE_CXX_FLAGS_DEBUG=-O1'],
  ],
  logFile: join(logDir, 'sanitized-cmake.log'),
});
await runLogged({
  ...common,
  label: 'Sanitized engine, compiling:',
  args: ['--build', folder, '--parallel', String(Math.max(2, cpus().length))],
  env: { ...process.env, NINJA_STATUS: '[%f/%t] ' },
  logFile: join(logDir, 'sanitized-build.log'),
  progress: (line) => /^\[(\d+\/\d+)\]/.exec(line)?.[1],
});
process.exitCode = await runProgram('ctest', [
  ...['--test-dir', folder, '--output-on-failure', '--no-tests=error'],
  ...['--parallel', String(Math.max(2, cpus().length))],
]);
