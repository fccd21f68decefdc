// System libraries: found by looking for the files themselves, so that any distribution will do; installed with apt-get
// where we are root, named with the one line to run where we are not.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { logDir, root } from './paths.mjs';
import { runLogged, say, SetupError } from './report.mjs';

const header = (path) => ['/usr/include', '/usr/local/include'].some((dir) => existsSync(join(dir, path)));
const program = (name) =>
  (process.env.PATH ?? '').split(delimiter).some((dir) => existsSync(join(dir, name)));
let linkerCache;
const library = (name) => {
  linkerCache ??= spawnSync('/sbin/ldconfig', ['-p'], { encoding: 'utf8' }).stdout ?? '';
  return linkerCache.includes(name);
};

/** Debian package → how its presence is seen. */
const wanted = {
  native: {
    cmake: () => program('cmake'),
    'ninja-build': () => program('ninja'),
    'g++': () => program('g++') || program('c++'),
    'nlohmann-json3-dev': () => header('nlohmann/json.hpp'),
    'libcli11-dev': () => header('CLI/CLI.hpp'),
    'libxxhash-dev': () => header('xxhash.h'),
    'libgtest-dev': () => header('gtest/gtest.h'),
  },
  format: { 'clang-format': () => program('clang-format') },
  electron: {
    unzip: () => program('unzip'),
    xvfb: () => program('Xvfb') || Boolean(process.env.DISPLAY),
    xauth: () => program('xauth') || Boolean(process.env.DISPLAY),
    'libgtk-3-0': () => library('libgtk-3.so.0'),
    libnss3: () => library('libnss3.so'),
    libasound2: () => library('libasound.so.2'),
    libgbm1: () => library('libgbm.so.1'),
    libxss1: () => library('libXss.so.1'),
    'libatk-bridge2.0-0': () => library('libatk-bridge-2.0.so.0'),
    libxtst6: () => library('libXtst.so.6'),
    libnotify4: () => library('libnotify.so.4'),
  },
};

/** @param {keyof typeof wanted} group */
export function systemLibraries(group) {
  const missing = () =>
    Object.entries(wanted[group])
      .filter(([, present]) => !present())
      .map(([name]) => name);
  return {
    name: `system libraries (${group})`,
    isDone: () => process.platform !== 'linux' || missing().length === 0,
    async run() {
      const names = missing();
      const line = `apt-get install -y --no-install-recommends ${names.join(' ')}`;
      const root0 = process.getuid?.() === 0;
      if (process.env.TESSERA_SYSTEM === 'no' || !root0 || !program('apt-get')) {
        const sudo = root0 ? '' : 'sudo ';
        throw new SetupError(
          `System libraries are missing: ${names.join(', ')}`,
          `Install them and run the command again: ${sudo}${line}`,
        );
      }
      say(
        `  Missing system libraries, installed now with apt-get (TESSERA_SYSTEM=no forbids it): ${names.join(' ')}`,
      );
      // In C, since what apt-get says is read.
      const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' };
      const options = { cwd: root, env, timeoutMs: 10 * 60_000 };
      const known = () => names.every((name) => isKnown(name));
      if (!known()) {
        await runLogged({
          ...options,
          label: 'Package lists:',
          command: 'apt-get',
          args: ['update'],
          logFile: join(logDir, 'apt-update.log'),
        });
      }
      if (readdirSync('/var/lib/dpkg/updates').length > 0) {
        // An installation was interrupted: apt-get refuses to work before it is brought to its end.
        await runLogged({
          ...options,
          label: 'Finishing an interrupted installation:',
          command: 'dpkg',
          args: ['--configure', '-a'],
          logFile: join(logDir, 'dpkg.log'),
        });
      }
      await runLogged({
        ...options,
        label: 'System libraries:',
        command: 'apt-get',
        args: ['install', '-y', '--no-install-recommends', ...names],
        logFile: join(logDir, 'apt-install.log'),
        progress: aptProgress(),
      });
      linkerCache = undefined;
      const still = missing();
      if (still.length > 0)
        throw new SetupError(
          `apt-get ran, but these are still missing: ${still.join(', ')}`,
          `See ${logDir}/apt-install.log`,
        );
    },
  };
}

/** A reader of apt-get's lines: each package is fetched, unpacked and set up. */
export function aptProgress() {
  let done = 0;
  let total = 0;
  return (line) => {
    const [, upgraded, added] = /^(\d+) upgraded, (\d+) newly installed/.exec(line) ?? [];
    if (added !== undefined) total = 3 * (Number(upgraded) + Number(added));
    if (/^(Get:\d|Unpacking |Setting up )/.test(line)) done = Math.min(done + 1, total);
    return done > 0 ? { done, total, unit: 'steps' } : undefined;
  };
}

function isKnown(name) {
  try {
    return execFileSync('apt-cache', ['policy', name], { encoding: 'utf8' }).includes('Candidate: ');
  } catch {
    return false;
  }
}
