import { existsSync, readdirSync } from 'node:fs';
import { cp, mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { RunListRow } from '../../../db/queries/runs.ts';
import { TesseraError } from '../../contract/errors.ts';
import type { CheckpointChoice } from '../../contract/runs.ts';
import { chooseCheckpoint } from './checkpoints.ts';
import type { Home } from '../home.ts';
import { makeOutputFolder } from '../makeFolder.ts';
import { notWritten } from '../notWritten.ts';
import { beginPartial } from '../partials.ts';

/** What a checkpoint holds besides a model: it is of use to this program alone. */
const ownFiles = /^(optimizer.*\.safetensors|state\.json|manifest\.json)$/;

/**
 * Copies the weights of one of a run's checkpoints with configuration and tokenizer into a folder that loads elsewhere
 * unchanged. The folder has its name only once it is whole. Returns the names of the files written.
 * @throws {TesseraError} `noCheckpoint`, `exportExists`, `diskFull`, `notWritable`
 */
export async function exportRun(
  home: Home,
  row: RunListRow,
  folder: string,
  checkpoint: CheckpointChoice = 'newest',
): Promise<string[]> {
  const weights = chooseCheckpoint(row, checkpoint).path;
  const target = resolve(folder);
  makeOutputFolder(dirname(target));
  if (existsSync(target)) makeOutputFolder(target);
  if (existsSync(target) && readdirSync(target).length > 0) {
    throw new TesseraError('exportExists', `${target} is not empty`, 'Give a new or an empty folder.');
  }
  const files = readdirSync(weights)
    .filter((name) => !ownFiles.test(name))
    .sort();
  const { path: partial, done } = beginPartial(home, target);
  try {
    await mkdir(partial);
    for (const name of files) await cp(join(weights, name), join(partial, name), { recursive: true });
    await rename(partial, target);
  } catch (error) {
    await rm(partial, { recursive: true, force: true }).catch(() => undefined);
    throw notWritten(target, error, 'folder');
  } finally {
    done();
  }
  return files;
}
