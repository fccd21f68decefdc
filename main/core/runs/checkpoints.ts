import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { RunListRow } from '../../../db/queries/runs.ts';
import { TesseraError } from '../../contract/errors.ts';
import type { CheckpointChoice, RunCheckpoint } from '../../contract/runs.ts';
import { checkpointFolders, newestCheckpoint, readStep } from './recover.ts';
import { runFiles } from './runFolder.ts';

type Owner = Pick<RunListRow, 'id' | 'name' | 'folder' | 'bestStep'>;

/** The complete checkpoints of a run that are on disk, newest first. */
export function listCheckpoints(row: Owner): RunCheckpoint[] {
  const { out } = runFiles(row.folder);
  if (!existsSync(out)) return [];
  const newest = newestCheckpoint(out)?.step;
  return checkpointFolders(out)
    .flatMap((path) => {
      const step = readStep(join(path, 'state.json'));
      if (step === undefined) return [];
      const sizeBytes = readdirSync(path).reduce((sum, file) => sum + statSync(join(path, file)).size, 0);
      const savedAtMs = Math.round(statSync(join(path, 'manifest.json')).mtimeMs);
      return [{ step, path, sizeBytes, savedAtMs, isNewest: step === newest, isBest: step === row.bestStep }];
    })
    .sort((a, b) => b.step - a.step);
}

/** @throws {TesseraError} `noCheckpoint`, naming the steps that there are */
export function chooseCheckpoint(row: Owner, choice: CheckpointChoice): RunCheckpoint {
  const all = listCheckpoints(row);
  const found = all.find((one) =>
    choice === 'newest' ? one.isNewest : choice === 'best' ? one.isBest : one.step === choice,
  );
  if (found !== undefined) return found;
  const run = `run ${row.name} (${row.id})`;
  const steps = all.map(({ step }) => step).join(', ');
  if (all.length === 0)
    throw new TesseraError(
      'noCheckpoint',
      `${run} has no checkpoint yet`,
      `Save one now (tessera checkpoint ${row.id}), or let the run end.`,
    );
  if (choice === 'best')
    throw new TesseraError(
      'noCheckpoint',
      `${run} keeps no best checkpoint${row.bestStep === null ? '' : ` of step ${String(row.bestStep)}`}; there are steps ${steps}`,
      'Set checkpoint.best: true and evaluate.everySteps in the recipe, with evalShare or evalDataset.',
    );
  throw new TesseraError(
    'noCheckpoint',
    `${run} has no checkpoint of step ${String(choice)}`,
    `There are steps ${steps}.`,
  );
}
