import { cpSync, existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { RunListRow } from '../../../db/queries/runs.ts';
import { TesseraError } from '../../contract/errors.ts';
import { newestCheckpoint } from './recover.ts';
import { runFiles } from './runFolder.ts';
import { makeFolder } from '../makeFolder.ts';

/** What a checkpoint holds besides a model: it is of use to this program alone. */
const ownFiles = /^(optimizer.*\.safetensors|state\.json|manifest\.json)$/;

/**
 * Copies the newest weights of a run with configuration and tokenizer into a folder that loads elsewhere unchanged.
 * Returns the names of the files written.
 * @throws {TesseraError} `noCheckpoint`, `exportExists`
 */
export function exportRun(row: RunListRow, folder: string): string[] {
  const weights = runModel(row);
  const target = resolve(folder);
  if (existsSync(target) && readdirSync(target).length > 0) {
    throw new TesseraError('exportExists', `${target} is not empty`, 'Give a new or an empty folder.');
  }
  makeFolder(target);
  const files = readdirSync(weights)
    .filter((name) => !ownFiles.test(name))
    .sort();
  for (const name of files) cpSync(join(weights, name), join(target, name), { recursive: true });
  return files;
}

/** The checkpoint that holds a run's newest weights: a loadable model folder. @throws {TesseraError} `noCheckpoint` */
export function runModel(row: RunListRow): string {
  const found = newestCheckpoint(runFiles(row.folder).out);
  if (found !== undefined) return found.path;
  throw new TesseraError(
    'noCheckpoint',
    `run ${row.name} (${row.id}) has no checkpoint yet`,
    'Save one with tessera checkpoint, or let the run end.',
  );
}
