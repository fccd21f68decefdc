import { readdir, realpath, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { dataFormatNames } from '../../../contract/dataFormats.ts';
import { TesseraError } from '../../../contract/errors.ts';
import { formatOfName } from './sniff.ts';

/**
 * The data files behind the given paths: a file is itself, whatever its name; a folder gives every file in it, at
 * any depth, whose name is a data file's, in sorted order. Each file once; a loop of symbolic links ends. Hidden
 * folders and `node_modules` hold no datasets. A large tree takes time: the caller stays free, and `signal` ends it.
 * @throws {TesseraError} `noFile`, `noPermission`, `noData`, each naming the path
 */
export async function listDataFiles(paths: string[], signal?: AbortSignal): Promise<string[]> {
  const files: string[] = [];
  const seen = new Set<string>();
  for (const path of paths) {
    const absolute = resolve(path);
    const found = await collect(absolute, seen, true, signal);
    if (found.length === 0 && (await stat(absolute)).isDirectory()) {
      const hint = `Data files are ${dataFormatNames}, or these with .gz or .zst.`;
      throw new TesseraError('noData', `the folder ${absolute} holds no data files`, hint);
    }
    files.push(...found);
  }
  return files;
}

async function collect(
  path: string,
  seen: Set<string>,
  isNamed: boolean,
  signal?: AbortSignal,
): Promise<string[]> {
  signal?.throwIfAborted();
  let real: string;
  let stats;
  try {
    real = await realpath(path);
    stats = await stat(real);
  } catch (error) {
    // A dangling link inside a folder is no data; a path that somebody named must be there.
    if (!isNamed && isCode(error, 'ENOENT', 'ELOOP')) return [];
    throw describeFileError(error, path);
  }
  if (seen.has(real)) return [];
  seen.add(real);
  if (stats.isDirectory()) return listFolder(path, seen, signal);
  if (stats.isFile() && (isNamed || formatOfName(path) !== undefined)) return [path];
  if (!isNamed) return [];
  throw new TesseraError(
    'noFile',
    `${path} is neither a file nor a folder`,
    'Give a data file or a folder of them.',
  );
}

async function listFolder(path: string, seen: Set<string>, signal?: AbortSignal): Promise<string[]> {
  try {
    const names = (await readdir(path)).filter(
      (name) => !name.startsWith('.') && name !== 'node_modules' && !isDocument(name),
    );
    const files: string[] = [];
    for (const name of names.sort()) files.push(...(await collect(join(path, name), seen, false, signal)));
    return files;
  } catch (error) {
    signal?.throwIfAborted();
    throw describeFileError(error, path);
  }
}

/** Files that lie beside data and are none. */
function isDocument(name: string): boolean {
  return /^(readme|license|licence|changelog|dataset_infos?)\b/i.test(name);
}

function isCode(error: unknown, ...codes: string[]): boolean {
  return codes.includes((error as NodeJS.ErrnoException).code ?? '');
}

/** What the file system refused, in words that name the path and the way out. */
export function describeFileError(error: unknown, path: string): Error {
  if (error instanceof TesseraError) return error;
  if (isCode(error, 'ENOENT', 'ENOTDIR')) {
    return new TesseraError('noFile', `there is no file or folder ${path}`, 'Check the path.');
  }
  if (isCode(error, 'EISDIR')) return new TesseraError('noFile', `${path} is a folder`, 'Give a file.');
  if (isCode(error, 'ELOOP')) {
    return new TesseraError('noFile', `${path} is a loop of symbolic links`, 'Check where its links lead.');
  }
  if (isCode(error, 'EACCES', 'EPERM')) {
    const { syscall = '' } = error as NodeJS.ErrnoException;
    const writes = /^(mkdir|rename|write|unlink|rmdir|copyfile)/.test(syscall);
    const hint = writes ? 'Change its permissions.' : 'Change its permissions, or copy it.';
    return new TesseraError('noPermission', `no permission to ${writes ? 'write' : 'read'} ${path}`, hint);
  }
  if (isCode(error, 'EROFS')) {
    return new TesseraError(
      'readOnly',
      `${path} cannot be written`,
      'Mend its permissions, or choose another home (--home DIR, TESSERA_HOME).',
    );
  }
  if (isCode(error, 'ENOSPC', 'EDQUOT')) {
    return new TesseraError(
      'diskFull',
      `the disk is full: ${path}`,
      'Free some space; nothing half-written was kept.',
    );
  }
  return error instanceof Error ? error : new Error(String(error));
}
