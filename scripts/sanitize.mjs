// The native tests with the address and undefined-behaviour sanitizers, in a build folder of their own.
import { join } from 'node:path';
import { runProgram } from './run.mjs';
import { setUp } from './setup/index.mjs';
import { cmakeBuild, numJobs } from './setup/native.mjs';
import { root } from './setup/paths.mjs';

const folder = join(root, 'build/sanitized');
await setUp(['native']);
await cmakeBuild({
  label: 'Sanitized engine',
  folder,
  log: 'sanitized-',
  definitions: [
    ...['-DTESSERA_SANITIZE=ON', '-DTESSERA_CUDA=OFF'],
    ...['-DCMAKE_BUILD_TYPE=Debug', '-DCMAKE_CXX_FLAGS_DEBUG=-O1'],
  ],
  targets: [],
});
process.exitCode = await runProgram('ctest', [
  ...['--test-dir', folder, '--output-on-failure', '--no-tests=error', '--parallel', String(numJobs)],
]);
