import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
} from 'node:fs';
import { realpathSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, describe, expect, it } from 'vitest';
import { openDatabase } from '../../db/connection.ts';
import { runQueries } from '../../db/queries/runs.ts';
import { addTotals, seriesQueries } from '../../db/queries/series.ts';
import type { StepRow } from '../../db/queries/runs.ts';
import type { CoreClient } from '../../main/contract/index.ts';
import { attachCore } from '../../main/core/attach.ts';

const clients: CoreClient[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});
async function attach(home: string): Promise<CoreClient> {
  const client = await attachCore(home);
  clients.push(client);
  return client;
}

const numRuns = 30;
const numSteps = 400;

/** A home whose history holds some runs with their steps. */
async function filledHome(): Promise<{ home: string; file: string }> {
  const home = mkdtempSync(join(tmpdir(), 'tessera-history-test-'));
  const file = join(home, 'tessera.sqlite');
  const db = await openDatabase(file);
  for (let index = 0; index < numRuns; index += 1) {
    const id = `run-${String(index).padStart(3, '0')}`;
    runQueries(db).insert({
      ...{
        id,
        name: id,
        kind: 'train',
        createdAtMs: index,
        recipe: '{"optimizer":{"lr":0.001}}',
        hashes: '{}',
      },
      ...{
        plan: '{}',
        preflight: null,
        folder: join(home, 'runs', id),
        plannedSteps: numSteps,
        codeVersion: null,
      },
    });
    runQueries(db).update(id, { status: 'completed', steps: numSteps });
    const rows: StepRow[] = [];
    for (let step = 1; step <= numSteps; step += 1)
      rows.push(
        addTotals(rows.at(-1), {
          ...{ step, atMs: step, loss: 1, gradNorm: 1, learningRate: 1, supervisedTokens: 1, realTokens: 1 },
          ...{ positions: 1, milliseconds: 1, flops: 1, elapsedMs: step },
        }),
      );
    seriesQueries(db).append(id, rows);
  }
  db.pragma('wal_checkpoint(TRUNCATE)');
  db.close();
  return { home, file };
}

describe('a history that another program holds', () => {
  it.each([
    ['all of it', 'PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT; BEGIN EXCLUSIVE'],
    // Readers get in: what is locked is only writing.
    ['its write lock', 'BEGIN IMMEDIATE'],
  ])(
    'is shown from a copy, refuses to be written, and is itself again once it is free: %s',
    { timeout: 60_000 },
    async (_what, hold) => {
      const { home, file } = await filledHome();
      const other = new Database(file);
      other.exec(hold);
      const core = await attach(home);
      expect((await core.call('system:info', {})).historyTrouble).toMatchObject({ code: 'historyLocked' });
      expect((await core.call('runs:list', {})).runs).toHaveLength(numRuns);
      await expect(core.call('runs:tag', { id: 'run-001', tags: ['x'] })).rejects.toMatchObject({
        code: 'historyReadOnly',
        hint: expect.stringContaining('lets go of it') as string,
      });
      expect(await core.call('system:reopen-history', {})).toEqual({ isHeld: true });
      other.exec('ROLLBACK');
      other.close();
      expect(await core.call('system:reopen-history', {})).toEqual({ isHeld: false });
      await core.closed;
      const next = await attach(home);
      expect((await next.call('system:info', {})).historyTrouble).toBeUndefined();
      await next.call('runs:tag', { id: 'run-001', tags: ['x'] });
      expect((await next.call('runs:list', { search: 'tag:x' })).runs).toHaveLength(1);
      await next.call('runs:rename', { id: 'run-001', name: ' night shift ' });
      expect((await next.call('runs:list', { search: 'night shift' })).runs).toMatchObject([
        { id: 'run-001', name: 'night shift' },
      ]);

      // Held while it is open: said so, with the way out, and nothing else suffers.
      const late = new Database(file);
      late.exec('BEGIN IMMEDIATE');
      await expect(next.call('runs:tag', { id: 'run-002', tags: ['x'] })).rejects.toMatchObject({
        code: 'historyLocked',
        hint: expect.stringContaining('try again') as string,
      });
      expect((await next.call('runs:list', {})).runs).toHaveLength(numRuns);
      late.exec('ROLLBACK');
      late.close();
      await next.call('runs:tag', { id: 'run-002', tags: ['x'] });
    },
  );
});

it('a copied home works on its own files: what is deleted in it stays where it was copied from', async () => {
  const { home, file } = await filledHome();
  const checkpointOf = (root: string) => join(root, 'runs', 'run-001', 'out', 'checkpoint-00000400');
  mkdirSync(checkpointOf(home), { recursive: true });
  for (const name of ['state.json', 'manifest.json'])
    writeFileSync(join(checkpointOf(home), name), `{"step":${String(numSteps)}}`);
  const db = await openDatabase(file);
  runQueries(db).update('run-001', { checkpointPath: checkpointOf(home), checkpointStep: numSteps });
  db.close();
  const copy = join(mkdtempSync(join(tmpdir(), 'tessera-history-test-')), 'copy of it');
  cpSync(home, copy, { recursive: true });
  const core = await attach(copy);
  const { checkpoints } = await core.call('runs:checkpoints', { id: 'run-001' });
  expect(checkpoints.map(({ path }) => path)).toEqual([checkpointOf(realpathSync(copy))]);
  await core.call('runs:delete', { ids: ['run-001'], forever: true });
  expect(existsSync(checkpointOf(copy))).toBe(false);
  expect(existsSync(checkpointOf(home))).toBe(true);
});

describe('a history that is damaged', () => {
  /** Noise over pages of the steps, which are most of the file. */
  function damage(file: string): void {
    const { size } = statSync(file);
    const handle = openSync(file, 'r+');
    writeSync(handle, Buffer.alloc(3 * 4096, 0xa5), 0, 3 * 4096, Math.floor(size / 4096 / 2) * 4096);
    closeSync(handle);
  }

  it(
    'is shown, copied, and mended from what can be read; the damaged file is kept',
    { timeout: 60_000 },
    async () => {
      const { home, file } = await filledHome();
      damage(file);
      const before = readFileSync(file);
      const core = await attach(home);
      expect((await core.call('system:info', {})).historyTrouble).toMatchObject({ code: 'historyDamaged' });
      expect((await core.call('runs:list', {})).runs).toHaveLength(numRuns);
      await expect(core.call('runs:delete', { ids: ['run-001'] })).rejects.toMatchObject({
        code: 'historyReadOnly',
      });
      expect(readFileSync(file).equals(before)).toBe(true);

      const copied = await core.call('system:copy-history', { folder: home });
      expect(copied.damagedTables.length).toBeGreaterThan(0);
      expect(new Database(copied.path).pragma('integrity_check', { simple: true })).toBe('ok');
      const mended = await core.call('system:mend-history', {});
      await core.closed;
      expect(readFileSync(mended.aside).equals(before)).toBe(true);
      expect(readdirSync(home).some((name) => name.includes('.damaged-'))).toBe(true);

      const next = await attach(home);
      expect((await next.call('system:info', {})).historyTrouble).toBeUndefined();
      expect((await next.call('runs:list', { search: 'lr<1' })).runs).toHaveLength(numRuns);
      await next.call('runs:delete', { ids: ['run-001'] });
      expect((await next.call('runs:list', {})).runs).toHaveLength(numRuns - 1);
      // What lay in the damaged pages is lost, and no more than that.
      const db = new Database(file, { readonly: true });
      const { steps } = db.prepare('SELECT count(*) AS steps FROM runSteps').get() as { steps: number };
      expect(steps).toBeGreaterThan(numRuns * numSteps * 0.9);
      db.close();
    },
  );
});
