import { execFile, fork, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import Database from 'better-sqlite3';
import { afterEach, describe, expect, it } from 'vitest';
import { attachCore, findCore } from '../../main/core/attach.ts';
import { openHome } from '../../main/core/home.ts';
import { isAlive, startTimeOf } from '../../main/core/lock.ts';

const coreMain = resolve('main/core/main.ts');
const newHome = () => mkdtempSync(join(tmpdir(), 'tessera-home-'));

const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
});

/** A core as a child; resolves to what it says first. */
function startCore(home: string, graceMs = 60_000): Promise<{ child: ChildProcess; said: unknown }> {
  const child = fork(coreMain, ['--home', home, '--grace', String(graceMs)], { silent: true });
  started.push(child);
  return new Promise((done) => {
    child.once('message', (said) => {
      done({ child, said });
    });
  });
}

const exited = (child: ChildProcess) => new Promise<number | null>((done) => child.once('exit', done));

describe('one core per home', () => {
  it('refuses a second core and lets every program attach to the first', async () => {
    const home = newHome();
    const { said } = await startCore(home);
    expect(said).toEqual({ ready: true });
    const second = await startCore(home);
    expect(second.said).toMatchObject({ failed: { code: 'homeInUse' } });
    const clients = await Promise.all([attachCore(home), attachCore(home)]);
    const infos = await Promise.all(clients.map((client) => client.call('system:info', {})));
    expect(new Set(infos.map(({ pid }) => pid)).size).toBe(1);
    for (const client of clients) client.close();
  });

  it('starts exactly one core for several programs at once', async () => {
    const home = newHome();
    const clients = await Promise.all(Array.from({ length: 4 }, () => attachCore(home)));
    const pids = await Promise.all(clients.map(async (client) => (await client.call('system:info', {})).pid));
    expect(new Set(pids).size).toBe(1);
    for (const client of clients) client.close();
  });

  it('takes over from a core that was killed', async () => {
    const home = newHome();
    const { child } = await startCore(home);
    const gone = exited(child);
    child.kill('SIGKILL');
    await gone;
    const { said } = await startCore(home);
    expect(said).toEqual({ ready: true });
    expect(readFileSync(join(home, 'core.log'), 'utf8')).toContain(`took over from core ${child.pid ?? 0}`);
  });

  it('takes no link of a core that is just dying, but starts another', async () => {
    const home = newHome();
    // What the system still takes in the dead one's name is closed without an answer.
    const dying = createServer((link) => {
      dying.close();
      link.destroy();
    });
    await new Promise<void>((done) => dying.listen(openHome(home).socket, done));
    const client = await attachCore(home);
    const { pid } = await client.call('system:info', {});
    expect(pid).not.toBe(process.pid);
    client.close();
    process.kill(pid, 'SIGTERM');
  });

  it('ends by itself soon after the last client has left, and not before', async () => {
    const home = newHome();
    const { child } = await startCore(home, 300);
    const gone = exited(child);
    const client = await attachCore(home);
    await new Promise((done) => setTimeout(done, 900));
    expect(child.exitCode).toBeNull();
    client.close();
    expect(await gone).toBe(0);
    expect(await findCore(home)).toBeUndefined();
  });

  it('serves a home whose path is longer than a socket may be', async () => {
    const home = join(newHome(), 'a'.repeat(80), 'b'.repeat(80));
    mkdirSync(home, { recursive: true });
    expect(Buffer.byteLength(openHome(home).socket)).toBeLessThanOrEqual(107);
    await startCore(home);
    const client = await attachCore(home);
    expect((await client.call('system:info', {})).home).toBe(home);
    client.close();
  });
});

describe('a core that cannot start says why', () => {
  it('refuses a database from a newer version and leaves it alone', async () => {
    const home = newHome();
    const db = new Database(join(home, 'tessera.sqlite'));
    db.pragma('user_version = 99990');
    db.close();
    await expect(attachCore(home)).rejects.toMatchObject({ code: 'databaseFromFuture' });
  });

  it('refuses a damaged database', async () => {
    const home = newHome();
    writeFileSync(
      join(home, 'tessera.sqlite'),
      'this is no database, however long one looks at it'.repeat(50),
    );
    await expect(attachCore(home)).rejects.toMatchObject({ code: 'databaseUnreadable' });
  });

  it('refuses a home that cannot be written', async () => {
    // A folder below a file: no user, root included, can write it.
    const file = join(newHome(), 'file');
    writeFileSync(file, '');
    await expect(attachCore(join(file, 'home'))).rejects.toMatchObject({ code: 'homeNotWritable' });
    await expect(attachCore('/proc/tessera')).rejects.toMatchObject({ code: 'homeNotWritable' });
  });
});

describe('isAlive', () => {
  it('tells a process from another that was given its number', () => {
    const startTime = startTimeOf(process.pid) ?? '';
    expect(isAlive({ pid: process.pid, startTime })).toBe(true);
    if (startTime !== '') expect(isAlive({ pid: process.pid, startTime: '1' })).toBe(false);
    expect(isAlive({ pid: 2 ** 22 + 1, startTime: '' })).toBe(false);
  });
});

it('a core that is killed at its start is said to the program that waits for it, even one with nothing else to do', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tessera-dies-'));
  const entry = join(folder, 'dies.mjs');
  writeFileSync(entry, "process.kill(process.pid, 'SIGKILL');\n");
  const program = JSON.stringify({ node: process.execPath, entry });
  const attach = join(import.meta.dirname, '../../main/core/attach.ts');
  const script = `const { attachPort } = await import(${JSON.stringify(pathToFileURL(attach).href)});
    await attachPort(${JSON.stringify(join(folder, 'home'))}, ${program}).catch((error) => console.log(error.code));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
  expect(stdout.trim()).toBe('coreStart');
  rmSync(folder, { recursive: true });
});
