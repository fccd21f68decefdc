import type { FilePreview, PreviewedRow } from '../../contract/datasets.ts';
import { TesseraError } from '../../contract/errors.ts';
import type { ReadOptions } from './options.ts';
import { describeFileError, listDataFiles } from './readers/files.ts';
import { readFileRows } from './readers/readFile.ts';
import { UnreadableFileError, type ReadItem } from './readers/rows.ts';
import { sniffFile } from './readers/sniff.ts';
import { RowError } from './schema/messages.ts';
import type { Example } from './schema/normalise.ts';
import { isStr, textOf } from './template/taggedString.ts';
import { toExample } from './toExample.ts';

const shownChars = 240;
/** After so long a few rows are enough; one alone, on a machine that is busy, would say little. */
const enoughMs = 700;
const fewRows = 50;
const maxMs = 5000;

/**
 * The first rows of files as they were recognised, long before an import of them is over: no model is needed. A
 * look that takes long ends with what was found by then, at the latest after five seconds (a first line of a gigabyte).
 * @throws {TesseraError} naming a file or folder that cannot be read
 */
export async function previewFiles(
  paths: string[],
  read: ReadOptions,
  count: number,
  signal: AbortSignal,
): Promise<FilePreview> {
  const rows: PreviewedRow[] = [];
  const startedMs = performance.now();
  const timeout = AbortSignal.timeout(maxMs);
  const either = AbortSignal.any([signal, timeout]);
  try {
    for (const file of await listDataFiles(paths, either)) {
      try {
        for await (const item of itemsOf(file, read, either)) {
          rows.push(preview(file, item, read));
          const isLate = rows.length >= fewRows && performance.now() - startedMs > enoughMs;
          if (rows.length >= count || isLate) return { rows, isAll: false };
        }
      } catch (error) {
        if (!(error instanceof UnreadableFileError)) throw describeFileError(error, file);
        rows.push({ file, ...error.at, problem: error.message });
      }
    }
    return { rows, isAll: true };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof TesseraError || !timeout.aborted) throw error;
    return { rows, isAll: false };
  }
}

async function* itemsOf(path: string, read: ReadOptions, signal: AbortSignal): AsyncGenerator<ReadItem> {
  const sniffed = await sniffFile(path);
  if ('problem' in sniffed) throw new UnreadableFileError({ line: 1 }, sniffed.problem);
  const { compression } = sniffed;
  const format = read.fileFormat ?? sniffed.format;
  const request = { path, format, compression, limits: read.limits, onBytes: () => undefined, signal };
  for await (const items of readFileRows(request)) {
    yield* items;
    signal.throwIfAborted();
  }
}

function preview(file: string, item: ReadItem, read: ReadOptions): PreviewedRow {
  try {
    const { format, example } = toExample(item, read, () => undefined);
    const [prompt, answer] = ends(example);
    return {
      file,
      ...item.at,
      format,
      prompt: prompt.slice(0, shownChars),
      answer: answer.slice(0, shownChars),
    };
  } catch (error) {
    if (!(error instanceof RowError)) throw error;
    return { file, ...item.at, problem: error.message };
  }
}

/** What is asked and what is answered, as far as a row has the two. */
function ends(example: Example): [prompt: string, answer: string] {
  if (example.kind === 'text') return ['', example.text];
  if (example.kind === 'completion') return [example.prompt, example.completion];
  const contentOf = (isAnswer: boolean) => {
    const found = example.messages.find((message) => (message.get('role') === 'assistant') === isAnswer);
    const content = found?.get('content');
    return content !== undefined && isStr(content) ? textOf(content) : '';
  };
  const user = example.messages.find((message) => message.get('role') === 'user')?.get('content');
  return [user !== undefined && isStr(user) ? textOf(user) : contentOf(false), contentOf(true)];
}
