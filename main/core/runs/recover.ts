import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NoteQueries } from '../../../db/queries/runNotes.ts';
import type { RunListRow, RunQueries } from '../../../db/queries/runs.ts';
import type { SeriesQueries } from '../../../db/queries/series.ts';
import type { CoreContext } from '../context.ts';
import { isAlive } from '../lock.ts';
import { checkRecipe } from './recipe.ts';
import { lostEvaluations, lostSamples, lostSteps } from './lostSteps.ts';
import { updateTotals } from './recorder.ts';
import { runFiles } from './runFolder.ts';
import { sampleReader } from './samples.ts';

const pollMs = 250;
/** An engine whose core died saves and exits by itself; a large model takes a while. */
const orphanLimitMs = 180_000;

/**
 * Brings the history in line with what a core that died left behind. Its engines notice its end, save and exit:
 * they are waited for, then their runs are marked. Returns the runs that were still waiting for an engine.
 */
export async function recoverRuns(
  { runs, series, notes }: { runs: RunQueries; series: SeriesQueries; notes: NoteQueries },
  { log, work }: Pick<CoreContext, 'log' | 'work'>,
  onRecovered: (id: string) => void,
): Promise<string[]> {
  const waiting = runs.withStatus('queued').map(({ id }) => id);
  const orphans = runs.withStatus('running', 'paused');
  if (orphans.length === 0) return waiting;
  const done = work.begin('recovering runs');
  for (const row of orphans) {
    await orphanEnd(row);
    const checkpoint = newestCheckpoint(runFiles(row.folder).out);
    const saved = checkpoint === undefined ? 'nothing was saved' : `saved at step ${checkpoint.step}`;
    log(`run ${row.id}: the core that trained it died; ${saved}`);
    runs.update(row.id, {
      status: checkpoint === undefined ? 'failed' : 'stopped',
      reason: `the core died while it trained; ${saved}`,
      endedAtMs: Date.now(),
      engine: null,
      ...(checkpoint && { checkpointStep: checkpoint.step, checkpointPath: checkpoint.path }),
    });
    if (checkpoint !== undefined) {
      series.append(row.id, lostSteps(checkpoint.path, series.at(row.id, Number.MAX_SAFE_INTEGER)));
      recoverEvaluations(row.id, checkpoint.path, runs);
      await recoverSamples(row, checkpoint.path, runs, notes);
    }
    updateTotals(row.id, runs, series);
    const data = JSON.stringify({ saved: checkpoint?.step });
    runs.addEvent(row.id, { atMs: Date.now(), step: checkpoint?.step ?? null, kind: 'coreDied', data });
    onRecovered(row.id);
  }
  done();
  return waiting;
}

function recoverEvaluations(id: string, checkpoint: string, runs: RunQueries): void {
  for (const event of lostEvaluations(checkpoint, runs.evaluations(id))) {
    const { event: kind, ...data } = event;
    const { step, phase, loss, best } = data;
    runs.addEvaluation(id, data);
    runs.addEvent(id, { atMs: Date.now(), step, kind, data: JSON.stringify(data) });
    runs.update(id, {
      ...(phase === 'before' ? { evalLossBefore: loss } : { evalLossAfter: loss }),
      ...(best && { bestLoss: loss, bestStep: step }),
    });
  }
}

/** A model that is no longer there costs the answers alone, and the time line says so. */
async function recoverSamples(
  { id, recipe }: RunListRow,
  checkpoint: string,
  runs: RunQueries,
  notes: NoteQueries,
): Promise<void> {
  const lost = lostSamples(checkpoint, notes.samples(id));
  if (lost.length === 0) return;
  try {
    const read = sampleReader(checkRecipe(JSON.parse(recipe), 'the stored recipe'));
    for (const { step, index, ids } of lost) {
      const { prompt, text } = await read(index, ids);
      notes.addSample(id, { step, position: index, prompt, text });
      const data = JSON.stringify({ position: index, text });
      runs.addEvent(id, { atMs: Date.now(), step, kind: 'sample', data });
    }
  } catch (error) {
    const message = `answers that came while the core was gone cannot be read: ${(error as Error).message}`;
    const data = JSON.stringify({ code: 'samples_lost', message });
    runs.addEvent(id, { atMs: Date.now(), step: lost[0]?.step ?? null, kind: 'warning', data });
  }
}

async function orphanEnd(row: RunListRow): Promise<void> {
  if (row.engine === null) return;
  const engine = JSON.parse(row.engine) as { pid: number; startTime: string };
  // By a clock that no one sets: the wall clock may jump while the machine sleeps.
  const deadline = performance.now() + orphanLimitMs;
  while (isAlive(engine)) {
    if (performance.now() > deadline) {
      process.kill(engine.pid, 'SIGKILL');
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

/** The newest complete checkpoint in an engine's output folder: one whose state and manifest are there. */
export function newestCheckpoint(out: string): { step: number; path: string } | undefined {
  if (!existsSync(out)) return undefined;
  return checkpointFolders(out)
    .map((path) => ({ path, step: readStep(join(path, 'state.json')) }))
    .filter((found): found is { step: number; path: string } => found.step !== undefined)
    .sort((a, b) => b.step - a.step)[0];
}

/** Folders of finished checkpoints: what an engine was killed over has another name. */
export function checkpointFolders(out: string): string[] {
  return readdirSync(out)
    .filter((name) => /^checkpoint-\d+$/.test(name))
    .map((name) => join(out, name))
    .filter((path) => existsSync(join(path, 'manifest.json')));
}

export function readStep(file: string): number | undefined {
  try {
    const { step } = JSON.parse(readFileSync(file, 'utf8')) as { step?: number };
    return step;
  } catch {
    return undefined;
  }
}
