import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { engineBinary, engineBuildDir, logDir, root, stampHolds, writeStamp } from './paths.mjs';
import { runLogged, say } from './report.mjs';

/** Jobs of a build or a run of the native tests. */
export const numJobs = Math.max(2, cpus().length);

export const hasNvcc = () =>
  (process.env.PATH ?? '')
    .split(':')
    .concat('/usr/local/cuda/bin')
    .some((dir) => existsSync(join(dir, 'nvcc')));

/** CUDA code is built where a GPU and nvcc are present, or where TESSERA_CUDA=1 asks for it. */
function cudaWanted() {
  if (process.env.TESSERA_CUDA === '1') return true;
  if (process.env.TESSERA_CUDA === '0') return false;
  return existsSync('/dev/nvidiactl') && hasNvcc();
}

/** Of the CUDA code: a list or `all`; empty: those of the GPUs here (cmake/cuda_architectures.cmake). */
const architectures = () => process.env.TESSERA_CUDA_ARCHITECTURES ?? '';

function sourcesFingerprint(folders) {
  const hash = createHash('sha256')
    .update(`cuda=${cudaWanted()} ${architectures()}`)
    .update(readFileSync(join(root, 'CMakeLists.txt')));
  const visit = (dir) => {
    for (const entry of readdirSync(dir, { withFileTypes: true }).sort((a, b) =>
      a.name < b.name ? -1 : 1,
    )) {
      const path = join(dir, entry.name);
      if (entry.isDirectory()) visit(path);
      else hash.update(`${path}:${statSync(path).mtimeMs}:${statSync(path).size};`);
    }
  };
  folders
    .map((folder) => join(root, folder))
    .filter(existsSync)
    .forEach(visit);
  return hash.digest('hex');
}

/**
 * Configures and compiles with Ninja, on at least two cores.
 * @param {{label: string, folder: string, log: string, definitions: string[], targets: string[]}} options `log` begins
 *   the names of the two log files
 */
export async function cmakeBuild({ label, folder, log, definitions, targets }) {
  const common = { cwd: root, timeoutMs: 20 * 60_000, command: 'cmake' };
  await runLogged({
    ...common,
    label: `${label}, configuring:`,
    args: ['-S', '.', '-B', folder, '-G', 'Ninja', ...definitions],
    logFile: join(logDir, `${log}cmake.log`),
  });
  await runLogged({
    ...common,
    label: `${label}, compiling:`,
    args: ['--build', folder, '--parallel', String(numJobs), ...targets],
    env: { ...process.env, NINJA_STATUS: '[%f/%t] ' },
    logFile: join(logDir, `${log}build.log`),
    progress: (line) => {
      const [, done, total] = /^\[(\d+)\/(\d+)\]/.exec(line) ?? [];
      return done === undefined || done === '0' ? undefined : { done: Number(done), total: Number(total) };
    },
  });
}

/** @param {{tests: boolean}} options tests: also the native test programs */
export function nativeBuild({ tests }) {
  const stamp = tests ? 'native-tests' : 'native';
  const fingerprint = () => sourcesFingerprint(tests ? ['native', 'tests/native'] : ['native']);
  return {
    name: tests ? 'engine and its tests' : 'engine',
    isDone: () => existsSync(engineBinary) && stampHolds(stamp, fingerprint()),
    async run() {
      const before = fingerprint();
      const cuda = cudaWanted();
      say(
        cuda
          ? '  Engine with CUDA.'
          : '  Engine for the CPU alone (no GPU with nvcc here; TESSERA_CUDA=1 builds the CUDA code all the same).',
      );
      await cmakeBuild({
        label: 'Engine',
        folder: engineBuildDir,
        log: '',
        definitions: [
          `-DTESSERA_CUDA=${cuda ? 'ON' : 'OFF'}`,
          `-DTESSERA_CUDA_ARCHITECTURES=${architectures()}`,
        ],
        targets: tests ? [] : ['--target', 'tessera-engine'],
      });
      writeStamp(stamp, before);
    },
  };
}
