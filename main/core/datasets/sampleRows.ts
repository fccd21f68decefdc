import type { RowSample } from '../../contract/datasets.ts';
import { readModelFolder } from './modelFolder.ts';
import type { ReadOptions, TokenOptions } from './options.ts';
import { describeFileError, listDataFiles } from './readers/files.ts';
import { readFileRows } from './readers/readFile.ts';
import { UnreadableFileError, type ReadItem } from './readers/rows.ts';
import { sniffFile } from './readers/sniff.ts';
import { detectFormat } from './schema/detect.ts';
import { RowError } from './schema/messages.ts';
import { applyColumns } from './schema/normalise.ts';
import { parseValue } from './schema/parse.ts';
import { describeType } from './schema/values.ts';
import { toJson } from './template/print.ts';
import { textOf } from './template/taggedString.ts';
import { Dict, type Value } from './template/values.ts';
import { toExample } from './toExample.ts';
import { ExampleRenderer, type RenderedExample } from './tokenise/renderExample.ts';

export interface SampleRequest {
  paths: string[];
  modelDir: string;
  read: ReadOptions;
  tokens: TokenOptions;
  count: number;
}

const sampleChars = 160;
const samplesPerColumn = 3;
const maxColumns = 200;

/**
 * Looks at the first rows without importing: their columns, their roles, and what the options make of them.
 * @throws {TesseraError} naming a file or folder that cannot be read
 */
export async function sampleRows(request: SampleRequest, signal: AbortSignal): Promise<RowSample> {
  const sample = new Sample(request);
  for (const path of await listDataFiles(request.paths, signal)) {
    try {
      for await (const item of firstItems(path, request, signal)) {
        sample.add(item);
        if (sample.rows >= request.count) return sample.result();
      }
    } catch (error) {
      if (!(error instanceof UnreadableFileError)) throw describeFileError(error, path);
      sample.skip(error.message);
    }
  }
  return sample.result();
}

async function* firstItems(
  path: string,
  { read }: SampleRequest,
  signal: AbortSignal,
): AsyncGenerator<ReadItem> {
  const sniffed = await sniffFile(path);
  if ('problem' in sniffed) throw new UnreadableFileError({ line: 1 }, sniffed.problem);
  const { compression } = sniffed;
  const format = read.fileFormat ?? sniffed.format;
  const request = { path, format, compression, limits: read.limits, onBytes: () => undefined, signal };
  for await (const items of readFileRows(request)) yield* items;
}

interface Column {
  type: string;
  filled: number;
  samples: string[];
}

class Sample {
  rows = 0;
  private readonly request: SampleRequest;
  private readonly renderer: ExampleRenderer;
  private readonly columns = new Map<string, Column>();
  private readonly roles = new Map<string, number>();
  private readonly formats = new Map<string, RowSample['formats'][number]>();
  private readonly skipped = new Map<string, number>();
  private preview: RowSample['preview'];

  constructor(request: SampleRequest) {
    this.request = request;
    this.renderer = new ExampleRenderer(readModelFolder(request.modelDir), request.tokens);
  }

  add(item: ReadItem): void {
    this.rows += 1;
    try {
      const row = rowOf(item);
      if (row !== undefined) this.look(row);
      const { example } = toExample(item, this.request.read, () => undefined);
      const rendered = this.renderer.render(example);
      this.preview ??= stretches(rendered);
    } catch (error) {
      if (!(error instanceof RowError)) throw error;
      this.skip(error.message);
    }
  }

  skip(reason: string): void {
    count(this.skipped, reason);
  }

  result(): RowSample {
    return {
      rows: this.rows,
      columns: Array.from(this.columns, ([name, column]) => ({ name, ...column })),
      roles: Array.from(this.roles, ([role, number]) => ({ role, count: number })),
      formats: [...this.formats.values()],
      skipped: Array.from(this.skipped, ([reason, number]) => ({ reason, count: number })),
      ...(this.preview && { preview: this.preview }),
    };
  }

  private look(row: Dict): void {
    for (const [name, value] of row.entries()) {
      if (typeof name !== 'string' || value === null) continue;
      const known = this.columns.get(name);
      if (known === undefined && this.columns.size >= maxColumns) continue;
      const column = known ?? { type: describeType(value), filled: 0, samples: [] };
      this.columns.set(name, column);
      column.filled += 1;
      if (column.samples.length < samplesPerColumn) column.samples.push(shown(value));
      if (Array.isArray(value)) this.lookAtRoles(value);
    }
    const detection = detectFormat(applyColumns(row, this.request.read.mapping.columns));
    if (detection === undefined) return;
    const key = `${detection.format} ${detection.reason}`;
    const known = this.formats.get(key);
    if (known === undefined) this.formats.set(key, { ...detection, count: 1 });
    else known.count += 1;
  }

  private lookAtRoles(messages: readonly Value[]): void {
    for (const message of messages) {
      const role = message instanceof Dict ? (message.get('role') ?? message.get('from')) : undefined;
      if (typeof role === 'string') count(this.roles, role);
    }
  }
}

/** The row as it stands, where it is one at all; what is wrong with it is told by the reading that follows. */
function rowOf(item: ReadItem): Dict | undefined {
  if ('problem' in item) return undefined;
  if ('value' in item) return item.value;
  try {
    const value = parseValue(item.json);
    return value instanceof Dict ? value : undefined;
  } catch {
    return undefined;
  }
}

const compact = { itemSeparator: ', ', keySeparator: ': ', ensureAscii: false, sortKeys: false };

function shown(value: Value): string {
  const text = typeof value === 'string' ? value : textOf(toJson(value, compact));
  return text.length > sampleChars ? `${text.slice(0, sampleChars)}…` : text;
}

function stretches({ pieces }: RenderedExample): NonNullable<RowSample['preview']> {
  return pieces.flatMap(({ text, supervised }) => {
    if (supervised === 'all' || supervised === 'none') return [{ text, isSupervised: supervised === 'all' }];
    const points = Array.from(text);
    const parts: NonNullable<RowSample['preview']> = [];
    let at = 0;
    for (const [from, to] of [...supervised, [points.length, points.length] as const]) {
      parts.push({ text: points.slice(at, from).join(''), isSupervised: false });
      parts.push({ text: points.slice(from, to).join(''), isSupervised: true });
      at = to;
    }
    return parts.filter((part) => part.text !== '');
  });
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
