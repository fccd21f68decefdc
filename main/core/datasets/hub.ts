import { createWriteStream, mkdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ListFileEntry } from '@huggingface/hub';
import { TesseraError } from '../../contract/errors.ts';
import type { CallContext } from '../../contract/channel.ts';
import { hashParts } from './modelFolder.ts';
import { formatOfName } from './readers/sniff.ts';
import { hashFile } from './readers/source.ts';

/** A dataset of the Hugging Face hub: `hub:OWNER/NAME[@REVISION][#SPLIT]`. */
export interface HubName {
  name: string;
  revision: string;
  split: string | undefined;
}

export interface HubAccess {
  url: string;
  /** Sent with requests to `url`, never stored. */
  token: string | undefined;
  /** How long an answer may take to begin. */
  answerLimitMs: number;
}

const defaultAnswerLimitMs = 3_000;

/** From the environment: `HF_TOKEN`, and `HF_ENDPOINT` for a mirror. @throws {TesseraError} `badToken` */
export function hubAccess(env: NodeJS.ProcessEnv = process.env): HubAccess {
  const token = env['HF_TOKEN'] ?? env['HUGGING_FACE_HUB_TOKEN'];
  const url = (env['HF_ENDPOINT'] ?? 'https://huggingface.co').replace(/\/+$/, '');
  if (token === undefined || token === '')
    return { url, token: undefined, answerLimitMs: defaultAnswerLimitMs };
  if (token.startsWith('hf_')) return { url, token, answerLimitMs: defaultAnswerLimitMs };
  throw new TesseraError(
    'badToken',
    'HF_TOKEN is no token of the hub: those begin with hf_',
    'Correct or unset it.',
  );
}

/** @throws {TesseraError} `badHubName` */
export function parseHubName(text: string): HubName {
  const match = /^hub:([\w.-]+\/[\w.-]+)(?:@([^#]+))?(?:#(.+))?$/.exec(text);
  if (match?.[1] !== undefined) return { name: match[1], revision: match[2] ?? 'main', split: match[3] };
  const hint = 'Write hub:OWNER/NAME, with @REVISION and #SPLIT where you want them.';
  throw new TesseraError('badHubName', `'${text}' names no dataset of the hub`, hint);
}

/**
 * Downloads a dataset's files below `root`, those that are there already not again; a download that was interrupted
 * goes on where it was.
 * @returns their paths, sorted
 * @throws {TesseraError} `hubUnreachable` (within five seconds), `noHubDataset`, `hubForbidden`, `hubDamaged`
 */
export async function downloadFromHub(
  hubName: HubName,
  root: string,
  access: HubAccess,
  call: CallContext,
): Promise<string[]> {
  const files = chooseFiles(await listHubFiles(hubName, access, call), hubName);
  const version = hashParts(files.flatMap(({ path, oid }) => [path, oid ?? ''])).slice(0, 16);
  const folder = join(root, ...hubName.name.split('/'), version);
  const totalBytes = files.reduce((sum, { size }) => sum + size, 0);
  let doneBytes = 0;
  const onBytes = (numBytes: number) => {
    doneBytes += numBytes;
    call.progress({ what: 'Downloading', done: doneBytes, total: totalBytes, unit: 'bytes' });
  };
  const paths: string[] = [];
  for (const file of files) {
    const path = join(folder, ...file.path.split('/'));
    if (statSync(path, { throwIfNoEntry: false })?.size === file.size) onBytes(file.size);
    else await download(hubName, file, path, access, call, onBytes);
    paths.push(path);
  }
  return paths;
}

async function listHubFiles(
  hubName: HubName,
  access: HubAccess,
  call: CallContext,
): Promise<ListFileEntry[]> {
  const { listFiles } = await import('@huggingface/hub');
  const entries: ListFileEntry[] = [];
  try {
    for await (const entry of listFiles({ ...request(hubName, access, call), recursive: true })) {
      if (entry.type === 'file') entries.push(entry);
    }
  } catch (error) {
    throw describeHubError(error, hubName, access, call);
  }
  return entries;
}

/** The split's data files: its name is a folder of theirs, or begins their name (`train-00000-of-00002.parquet`). */
function chooseFiles(files: ListFileEntry[], { name, split }: HubName): ListFileEntry[] {
  const data = files.filter(
    ({ path }) => formatOfName(path) !== undefined && !/(^|\/)(readme|license|\.)/i.test(path),
  );
  const belongs =
    (wanted: string) =>
    ({ path }: ListFileEntry) => {
      const folders = path.split('/');
      const file = folders.pop() ?? '';
      return (
        folders.includes(wanted) || (file.startsWith(wanted) && !/^[a-z0-9]/i.test(file.slice(wanted.length)))
      );
    };
  const chosen = split === undefined ? data.filter(belongs('train')) : data.filter(belongs(split));
  const all = split === undefined && chosen.length === 0 ? data : chosen;
  if (all.length > 0) return all.sort((a, b) => (a.path < b.path ? -1 : 1));
  const there = data
    .slice(0, 8)
    .map(({ path }) => path)
    .join(', ');
  const what = split === undefined ? 'no data files' : `no data files of the split '${split}'`;
  throw new TesseraError(
    'noHubDataset',
    `${name} has ${what}`,
    there === '' ? undefined : `It has: ${there}`,
  );
}

async function download(
  hubName: HubName,
  file: ListFileEntry,
  path: string,
  access: HubAccess,
  call: CallContext,
  onBytes: (numBytes: number) => void,
): Promise<void> {
  const partial = `${path}.part`;
  mkdirSync(dirname(path), { recursive: true });
  const have = statSync(partial, { throwIfNoEntry: false })?.size ?? 0;
  const start = have <= file.size ? have : 0;
  onBytes(start);
  if (start < file.size) await append(hubName, file, partial, start, access, call, onBytes);
  await checkDownload(file, partial);
  renameSync(partial, path);
}

async function append(
  hubName: HubName,
  file: ListFileEntry,
  partial: string,
  start: number,
  access: HubAccess,
  call: CallContext,
  onBytes: (numBytes: number) => void,
): Promise<void> {
  try {
    const { downloadFile } = await import('@huggingface/hub');
    const blob = await downloadFile({ ...request(hubName, access, call), path: file.path });
    if (blob === null) throw new TesseraError('noHubDataset', `${hubName.name} has no file ${file.path}`);
    const source = Readable.fromWeb(blob.slice(start).stream() as Parameters<typeof Readable.fromWeb>[0]);
    source.on('data', (chunk: Uint8Array) => {
      onBytes(chunk.length);
    });
    await pipeline(source, createWriteStream(partial, { flags: start > 0 ? 'a' : 'w' }), {
      signal: call.signal,
    });
  } catch (error) {
    throw describeHubError(error, hubName, access, call);
  }
}

async function checkDownload({ path, size, lfs }: ListFileEntry, partial: string): Promise<void> {
  const isWhole =
    statSync(partial).size === size && (lfs === undefined || (await hashFile(partial)) === lfs.oid);
  if (isWhole) return;
  rmSync(partial);
  throw new TesseraError('hubDamaged', `${path} arrived damaged`, 'Import it again: it is downloaded anew.');
}

function request({ name, revision }: HubName, { url, token, answerLimitMs }: HubAccess, call: CallContext) {
  const limited: typeof fetch = async (input, init) => {
    const limit = new AbortController();
    const timer = setTimeout(() => {
      limit.abort(new Error(`no answer within ${String(answerLimitMs / 1000)} seconds`));
    }, answerLimitMs);
    try {
      return await fetch(input, { ...init, signal: AbortSignal.any([call.signal, limit.signal]) });
    } finally {
      clearTimeout(timer);
    }
  };
  const repo = { type: 'dataset', name } as const;
  return { repo, revision, hubUrl: url, fetch: limited, ...(token !== undefined && { accessToken: token }) };
}

function describeHubError(
  error: unknown,
  { name, revision }: HubName,
  { url }: HubAccess,
  call: CallContext,
): Error {
  if (error instanceof TesseraError) return error;
  if (call.signal.aborted) return new TesseraError('cancelled', 'the download was cancelled');
  const { statusCode, message, cause } = error as Error & { statusCode?: number };
  if (statusCode === 401 || statusCode === 403) {
    const hint =
      'Set HF_TOKEN to a token that may read it; a gated dataset must be accepted on its page first.';
    return new TesseraError('hubForbidden', `${url} does not give out ${name}`, hint);
  }
  if (statusCode === 404) {
    return new TesseraError(
      'noHubDataset',
      `${url} has no dataset ${name} at ${revision}`,
      'Check name and revision.',
    );
  }
  const why = cause instanceof Error ? cause.message : message;
  const hint = 'Check the network; or download the files elsewhere and import them from disk.';
  return new TesseraError('hubUnreachable', `${url} cannot be reached: ${why}`, hint);
}
