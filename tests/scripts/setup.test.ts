// Set-up's own build step on a small project whose compiler takes its time and keeps a diary.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const sources = ['a', 'b', 'c', 'd', 'e', 'f'];
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'set-up-'));
  cpSync('scripts/setup', join(folder, 'scripts/setup'), { recursive: true });
  mkdirSync(join(folder, 'native'));
  sources.forEach((name, index) => {
    writeFileSync(
      join(folder, `native/${name}.c`),
      index === 0 ? 'int main(void) { return 0; }\n' : `int ${name}(void) { return 0; }\n`,
    );
  });
  writeFileSync(
    join(folder, 'native/slow.sh'),
    '#!/bin/sh\nfor last; do :; done\necho "start $last" >> diary\nsleep 0.4\n"$@" && echo "end $last" >> diary\n',
  );
  chmodSync(join(folder, 'native/slow.sh'), 0o755);
  writeFileSync(
    join(folder, 'CMakeLists.txt'),
    `cmake_minimum_required(VERSION 3.22)
project(small C)
set(CMAKE_C_COMPILER_LAUNCHER \${CMAKE_SOURCE_DIR}/native/slow.sh)
add_executable(tessera-engine ${sources.map((name) => `native/${name}.c`).join(' ')})
`,
  );
  writeFileSync(
    join(folder, 'go.mjs'),
    `import { take } from './scripts/setup/index.mjs';
import { nativeBuild } from './scripts/setup/native.mjs';
await take([nativeBuild({ tests: false })]);
`,
  );
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

interface SetUp {
  process: ChildProcess;
  ended: Promise<{ code: number | null; said: string }>;
}
function setUp(): SetUp {
  const child = spawn(process.execPath, ['go.mjs'], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  return {
    process: child,
    ended: new Promise((resolve) => {
      child.on('exit', (code) => {
        resolve({ code, said });
      });
    }),
  };
}
/** The beginnings and ends of a source's compilations, in their order. */
function story(name: string): string {
  const file = join(folder, 'build/diary');
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
  return lines
    .filter((line) => line.endsWith(`/${name}.c`))
    .map((line) => line.split(' ')[0])
    .join(' ');
}
/** How often each source was begun and finished. */
function diary(): Record<string, { start: number; end: number }> {
  const count = (word: string, name: string) => story(name).split(word).length - 1;
  return Object.fromEntries(
    sources.map((name) => [name, { start: count('start', name), end: count('end', name) }]),
  );
}
const finished = () => Object.values(diary()).filter(({ end }) => end > 0).length;
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 20));
}

const run = promisify(execFile);

it('npm start refuses the home of a newer Tessera before anything is set up', async () => {
  // A clone in which nothing is installed yet.
  const clone = join(folder, 'clone');
  for (const part of ['scripts', 'db', 'main']) cpSync(part, join(clone, part), { recursive: true });
  const home = join(folder, 'home');
  mkdirSync(home);
  const header = Buffer.alloc(100);
  header.writeUInt32BE(99_990, 60);
  writeFileSync(join(home, 'tessera.sqlite'), header);
  const start = run(process.execPath, ['scripts/start.mjs', '--home', home], { cwd: clone });
  const words = `${join(home, 'tessera.sqlite')} was written by a newer Tessera (version 99990`;
  await expect(start).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/written by a newer Tessera.*\n.*--home DIR/) as string,
  });
  await expect(start).rejects.toMatchObject({ stderr: expect.stringContaining(words) as string });
  expect(existsSync(join(clone, 'node_modules'))).toBe(false);
  expect(readFileSync(join(home, 'tessera.sqlite')).equals(header)).toBe(true);
});

it.each([
  [{ done: 12, total: 240 }, 10, '12/240, about 3 min left'],
  [{ done: 120, total: 240, unit: 'files' }, 30, '120/240 files, about 30 s left'],
  // Nothing is promised by the first few, or when all is done.
  [{ done: 11, total: 240 }, 10, '11/240'],
  [{ done: 240, total: 240 }, 60, '240/240'],
])('set-up says how far it is and what is left: %j after %i s', async (far, seconds, words) => {
  const script = `const { howFar } = await import('./scripts/setup/report.mjs');
    process.stdout.write(howFar(${JSON.stringify(far)}, ${String(seconds)}));`;
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script]);
  expect(stdout).toBe(words);
});

it('set-up says how far an installation by apt-get is, from the start to the end', async () => {
  const lines = [
    'Reading package lists...',
    'The following NEW packages will be installed:',
    '1 upgraded, 1 newly installed, 0 to remove and 40 not upgraded.',
    'Need to get 9,131 kB of archives.',
    'Get:1 http://mirror/debian bookworm/main amd64 libclang-cpp14 amd64 1:14.0.6-12 [11.1 MB]',
    'Get:2 http://mirror/debian bookworm/main amd64 clang-format amd64 1:14.0-55.7 [10.5 kB]',
    'Selecting previously unselected package libclang-cpp14.',
    'Unpacking libclang-cpp14 (1:14.0.6-12) ...',
    'Unpacking clang-format:amd64 (1:14.0-55.7) over (1:13) ...',
    'Setting up libclang-cpp14 (1:14.0.6-12) ...',
    'Setting up clang-format:amd64 (1:14.0-55.7) ...',
    'Processing triggers for libc-bin (2.36-9) ...',
  ];
  const script = `const { aptProgress } = await import('./scripts/setup/system.mjs');
    const { howFar } = await import('./scripts/setup/report.mjs');
    const progress = aptProgress();
    let far;
    const said = ${JSON.stringify(lines)}.map((line) => (far = progress(line) ?? far) ? howFar(far, 10) : '');
    process.stdout.write(JSON.stringify([...new Set(said)]));`;
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script]);
  expect(JSON.parse(stdout)).toEqual([
    '',
    '1/6 steps, about 50 s left',
    '2/6 steps, about 20 s left',
    '3/6 steps, about 10 s left',
    '4/6 steps, about 5 s left',
    '5/6 steps, about 2 s left',
    '6/6 steps',
  ]);
});

it.each([
  ['the GPUs here', '', '8.6\n9.0\n8.0', '80;90a'],
  ['a newer one and one that is unknown', '', '12.0\n12.1', '120a'],
  ['none', '', 'No devices were found', '90a'],
  ['those asked for', '89', '9.0', '89'],
  ['a release', 'all', '9.0', '80;89;90a;120a'],
])('CUDA code is compiled for %s', async (_, asked, capabilities, wanted) => {
  writeFileSync(join(folder, 'nvidia-smi'), `#!/bin/sh\necho '${capabilities}'\n`);
  chmodSync(join(folder, 'nvidia-smi'), 0o755);
  const { stdout } = await run(
    'cmake',
    [`-DTESSERA_CUDA_ARCHITECTURES=${asked}`, '-P', 'cmake/cuda_architectures.cmake'],
    { env: { ...process.env, PATH: `${folder}:${process.env.PATH ?? ''}` } },
  );
  expect(stdout).toBe(`-- CUDA code for ${wanted}\n`);
});

describe.runIf(process.platform === 'linux')('set-up', { timeout: 60_000 }, () => {
  it('killed in mid-build, goes on where it was, and nothing of the killed one works on beside it', async () => {
    const first = setUp();
    await until(() => finished() >= 2);
    const done = Object.entries(diary()).filter(([, { end }]) => end > 0);
    first.process.kill('SIGKILL');
    await first.ended;
    const { code, said } = await setUp().ended;
    expect(code, said).toBe(0);
    expect(existsSync(join(folder, 'build/tessera-engine'))).toBe(true);
    for (const [name] of done) expect(diary()[name], name).toEqual({ start: 1, end: 1 });
    // Begun before the kill and again after it; whoever was done with one but had not written it down does it again.
    for (const name of sources) expect(story(name), name).toMatch(/^(start |start end )?start end$/);
  });

  it('interrupted by Ctrl-C or a closed terminal, ends its compilers with itself', async () => {
    for (const [signal, exitCode] of [
      ['SIGINT', 130],
      ['SIGHUP', 129],
    ] as const) {
      const interrupted = setUp();
      const before = finished();
      await until(() => finished() > before);
      interrupted.process.kill(signal);
      expect((await interrupted.ended).code).toBe(exitCode);
      const left = finished();
      await new Promise((resolve) => setTimeout(resolve, 1000));
      expect(finished()).toBe(left);
    }
  });

  it('asked for twice at once, works once', async () => {
    const [one, two] = await Promise.all([setUp().ended, setUp().ended]);
    expect([one.code, two.code]).toEqual([0, 0]);
    expect(one.said + two.said).toContain('Another set-up is at work');
    for (const [name, times] of Object.entries(diary())) expect(times, name).toEqual({ start: 1, end: 1 });
    const third = await setUp().ended;
    expect(third).toEqual({ code: 0, said: '' });
  });
});
