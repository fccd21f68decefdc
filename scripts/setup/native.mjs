import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { engineBinary, engineBuildDir, logDir, root, stampHolds, writeStamp } from './paths.mjs';
import { runLogged, say } from './report.mjs';

/** CUDA code is built where a GPU and nvcc are present, or where TESSERA_CUDA=1 asks for it. */
function cudaWanted() {
  if (process.env.TESSERA_CUDA === '1') return true;
  if (process.env.TESSERA_CUDA === '0' || !existsSync('/dev/nvidiactl')) return false;
  return (process.env.PATH ?? '')
    .split(':')
    .concat('/usr/local/cuda/bin')
    .some((dir) => existsSync(join(dir, 'nvcc')));
}

function sourcesFingerprint(folders) {
  const hash = createHash('sha256')
    .update(`cuda=${cudaWanted()}`)
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
      const common = { cwd: root, timeoutMs: 20 * 60_000 };
      await runLogged({
        ...common,
        label: 'Engine, configuring:',
        command: 'cmake',
        args: ['-S', '.', '-B', engineBuildDir, '-G', 'Ninja', `-DTESSERA_CUDA=${cuda ? 'ON' : 'OFF'}`],
        logFile: join(logDir, 'cmake.log'),
      });
      await runLogged({
        ...common,
        label: 'Engine, compiling:',
        command: 'cmake',
        args: [
          '--build',
          engineBuildDir,
          '--parallel',
          String(Math.max(2, cpus().length)),
          ...(tests ? [] : ['--target', 'tessera-engine']),
        ],
        env: { ...process.env, NINJA_STATUS: '[%f/%t] ' },
        logFile: join(logDir, 'build.log'),
        progress: (line) => /^\[(\d+\/\d+)\]/.exec(line)?.[1],
      });
      writeStamp(stamp, before);
    },
  };
}
