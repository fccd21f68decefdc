import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { RunListRow, RunQueries } from '../../../db/queries/runs.ts';
import { TesseraError } from '../../contract/errors.ts';
import type { Log } from '../log.ts';
import { runFiles } from './runFolder.ts';
import { isEnded } from './runState.ts';
import type { RunStatus } from '../../contract/runs.ts';

/** How long a deleted run can be brought back. */
export const keptDeletedMs = 7 * 24 * 3_600_000;

/** Hides runs; they and their files go after some days, or with `forever` at once. @throws {TesseraError} `runActive` */
export function deleteRuns(queries: RunQueries, rows: RunListRow[], forever: boolean): void {
  const going = rows.find(({ status }) => !isEnded(status as RunStatus));
  if (going !== undefined)
    throw new TesseraError(
      'runActive',
      `run ${going.name} (${going.id}) is ${going.status}`,
      `Stop it first (tessera stop ${going.id}).`,
    );
  for (const row of rows) {
    if (forever) removeRun(queries, row);
    else queries.update(row.id, { deletedAtMs: Date.now() });
  }
}

/** Removes for good what was deleted long enough ago. */
export function sweepDeleted(queries: RunQueries, log: Log, nowMs = Date.now()): void {
  for (const row of queries.deletedBefore(nowMs - keptDeletedMs)) {
    try {
      removeRun(queries, row);
      log(`run ${row.id}: deleted ${String(keptDeletedMs / 86_400_000)} days ago, now gone`);
    } catch (error) {
      log(`run ${row.id}: its files could not be removed: ${String(error)}`);
    }
  }
}

/**
 * Removes what a core that was killed while it prepared runs left behind: folders that no row names. One that holds
 * anything an engine wrote stays, whatever the history says.
 */
export function sweepPrepared(folder: string, queries: Pick<RunQueries, 'get'>, log: Log): void {
  for (const name of readdirSync(folder).filter((each) => /^\d{6}-\d{6}-[0-9a-f]{6}$/.test(each))) {
    const { out } = runFiles(join(folder, name));
    if (queries.get(name) !== undefined || (existsSync(out) && readdirSync(out).length > 0)) continue;
    try {
      rmSync(join(folder, name), { recursive: true, force: true });
      log(`run ${name} was never begun: what was prepared for it is gone`);
    } catch (error) {
      log(`run ${name} was never begun, and its folder could not be removed: ${String(error)}`);
    }
  }
}

/** Files first: a row without files can be listed and deleted again, files without a row never. */
function removeRun(queries: RunQueries, { id, folder }: Pick<RunListRow, 'id' | 'folder'>): void {
  rmSync(folder, { recursive: true, force: true });
  queries.remove(id);
}
