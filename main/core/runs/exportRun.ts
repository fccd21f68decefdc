import { cpSync, existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { RunListRow } from '../../../db/queries/runs.ts';
import { TesseraError } from '../../contract/errors.ts';
import type { CheckpointChoice } from '../../contract/runs.ts';
import { chooseCheckpoint } from './checkpoints.ts';
import { makeFolder } from '../makeFolder.ts';

/** What a checkpoint holds besides a model: it is of use to this program alone. */
const ownFiles = /^(optimizer.*\.safetensors|state\.json|manifest\.json)$/;

/**
 * Copies the weights of one of a run's checkpoints with configuration and tokenizer into a folder that loads elsewhere unchanged.
 * Returns the names of the files written.
 * @throws {TesseraError} `noCheckpoint`, `exportExists`
 */
export function exportRun(
  row: RunListRow,
  folder: string,
  checkpoint: CheckpointChoice = 'newest',
): string[] {
  const weights = chooseCheckpoint(row, checkpoint).path;
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
