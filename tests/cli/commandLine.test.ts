import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { printable } from '../../main/cli/output.ts';
import { createProgressBar } from '../../main/cli/progressBar.ts';
import { commandFor } from '../../renderer/views/train/startState.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'command-line-'));
});
afterEach(() => {
  rmSync(home, { recursive: true, force: true });
});

interface Answer {
  code: number;
  out: string;
  err: string;
}
const tessera = (...args: string[]) => tesseraIn({}, ...args);

function tesseraIn(env: NodeJS.ProcessEnv, ...args: string[]): Promise<Answer> {
  return new Promise((resolve) => {
    const options = { env: { ...process.env, ...env } };
    const child = execFile(process.execPath, ['main/cli/main.ts', ...args], options, (_error, out, err) => {
      resolve({ code: child.exitCode ?? -1, out, err });
    });
  });
}

test('the home may stand before the command or after it', async () => {
  for (const args of [
    ['--home', home, 'runs', 'list', '--json'],
    ['--json', `--home=${home}`, 'runs', 'list'],
    ['runs', 'list', '--json', '--home', home],
  ]) {
    const { code, out } = await tessera(...args);
    expect(code, args.join(' ')).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ runs: [] });
  }
});

test('exit codes: 0 done, 1 failed, 2 wrong call; with --json an error is one JSON value', async () => {
  expect((await tessera('--help')).code).toBe(0);
  expect((await tessera('runs', 'list', '--help')).code).toBe(0);

  const failed = await tessera('runs', 'show', 'nothing', '--json', '--home', home);
  expect(failed.code).toBe(1);
  expect(JSON.parse(failed.out)).toMatchObject({ error: { code: expect.any(String) as string } });

  for (const args of [
    ['trian', 'recipe.yaml'],
    ['train'],
    ['train', 'recipe.yaml', '--sett', 'a=1'],
    ['runs', 'show'],
    ['settings', 'diskBudget=3'],
  ]) {
    const wrong = await tessera(...args, '--json', '--home', home);
    expect(wrong.code, args.join(' ')).toBe(2);
    expect(JSON.parse(wrong.out)).toMatchObject({ error: { code: 'usage' } });
  }
});

test('settings are changed one by one, and shown as a table', async () => {
  const changes = ['defaults.lr=3e-4', 'notifications.ended=false', 'defaults.budget=64', 'defaults.budget='];
  const { out } = await tessera('settings', ...changes, '--home', home);
  expect(out).toMatch(/^notifications\.ended +false$/m);
  expect(out).toMatch(/^defaults\.lr +0\.0003$/m);
  expect(out).toMatch(/^defaults\.budget +–$/m);
});

test('a mistyped word names its neighbour', async () => {
  expect((await tessera('trian', 'recipe.yaml')).err).toContain("Did you mean 'train'?");
  expect((await tessera('train', 'recipe.yaml', '--sett', 'a=1')).err).toContain('Did you mean --set?');
});

test('progress is drawn in ASCII where the locale has no more', () => {
  const stream = new PassThrough();
  vi.stubEnv('LC_ALL', 'C');
  createProgressBar(stream as unknown as NodeJS.WriteStream).update({ what: 'Training', done: 1, total: 2 });
  vi.unstubAllEnvs();
  const line = String(stream.read());
  expect(line).toContain('##############--------------  50 %');
  expect(line).toMatch(/^[ -~\n]*$/);
});

test('what says nothing of itself is named with the time it takes; what is counted is not', () => {
  vi.useFakeTimers();
  vi.stubEnv('LC_ALL', 'C.UTF-8');
  const terminal = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
  const bar = createProgressBar(terminal as unknown as NodeJS.WriteStream);
  const written = () => String(terminal.read() ?? '');
  bar.wait('Saving');
  vi.advanceTimersByTime(1900);
  expect(written()).toBe('');
  vi.advanceTimersByTime(3100);
  expect(written()).toContain('Saving…  0:05');
  bar.update({ what: 'Training', done: 1, total: 2 });
  expect(written()).toContain('50 %');
  // A clock that is set back stops no bar, and one that jumps ahead makes nothing late.
  vi.setSystemTime(0);
  vi.advanceTimersByTime(1000);
  bar.update({ what: 'Training', done: 3, total: 4 });
  vi.setSystemTime(1e15);
  expect(written()).toContain('75 %  3 / 4  0:00 left');
  vi.advanceTimersByTime(9000);
  expect(written()).toBe('');
  bar.update({ what: 'Planning memory', done: 0 });
  bar.end();
  written();
  vi.advanceTimersByTime(9000);
  expect(written()).toBe('');
  vi.unstubAllEnvs();
  vi.useRealTimers();
});

test('the command that the window copies reads its recipe', () => {
  const copied = commandFor({ model: 'bundled', dataset: 'bundled', name: `it's "$HOME"`, steps: 0 });
  const program = `tessera() { '${process.execPath}' main/cli/main.ts "$@" --json; }`;
  const { stdout } = spawnSync('sh', ['-c', `${program}\n${copied}`], { encoding: 'utf8' });
  expect(JSON.parse(stdout)).toEqual({ error: { code: 'badRecipe', message: "-: 'steps' must be above 0" } });
});

test('the first word of several commands names them', async () => {
  const alone = await tessera('data');
  expect(alone.code).toBe(2);
  expect(alone.err).toContain('data import');
  const help = await tessera('data', '--help');
  expect(help.code).toBe(0);
  expect(help.out).toContain('data import');
  expect(help.out).not.toContain('runs list');
});

test('in a clone, where npm starts it, it names itself by what can be typed there', async () => {
  const { out } = await tesseraIn({ npm_lifecycle_event: 'tessera' }, 'pack', '--help');
  expect(out).toContain('Usage: npm run -s tessera -- pack');
});

test('an empty home is refused: it would be the working folder', async () => {
  const { code, err } = await tessera('runs', 'list', '--home', '');
  expect(code).toBe(2);
  expect(err).toContain('--home is empty');
});

test('a reader that went away ends the command without a word', async () => {
  const child = spawn(process.execPath, ['main/cli/main.ts', '--help'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout.destroy();
  let err = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  const [code] = (await once(child, 'close')) as [number | null];
  expect(err).toBe('');
  expect(code).toBe(0);
});

test('control characters of data are shown, not obeyed', () => {
  expect(printable('a\u001b]0;title\u0007\tb\n\u001b[1mc\u001b[22m\u001b[2J\u009b')).toBe(
    'a␛]0;title␇\tb\n\u001b[1mc\u001b[22m␛[2J\ufffd',
  );
});
