import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect } from 'vitest';
import { openDatabase } from '../../../db/connection.ts';
import type { CallContext } from '../../../main/contract/channel.ts';
import type { TesseraError } from '../../../main/contract/errors.ts';
import { createWork, type CoreContext } from '../../../main/core/context.ts';
import { Datasets, type ImportOutcome, type ImportRequest } from '../../../main/core/datasets/datasets.ts';
import { defaultReadOptions, defaultTokenOptions } from '../../../main/core/datasets/options.ts';
import type { SkippedRow } from '../../../main/core/datasets/problems.ts';
import { openHome } from '../../../main/core/home.ts';

const folders: string[] = [];
const closers: (() => void)[] = [];

afterEach(() => {
  for (const close of closers.splice(0)) close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

export function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tessera-data-'));
  folders.push(folder);
  return folder;
}

/** Writes files by their paths in a new folder and returns it. */
export function writeFiles(files: Record<string, string | Uint8Array>): string {
  const folder = tempFolder();
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}

export const templates = join(import.meta.dirname, '../../fixtures/templates');
const specials = ['<|endoftext|>', '<|im_start|>', '<|im_end|>', '<s>'];

/** A model folder with a byte-level tokenizer (every byte a token, a few merges) and ChatML-like special tokens. */
export function makeModel(
  options: { template?: string | null; config?: Record<string, unknown>; bosByProcessor?: boolean } = {},
): string {
  const folder = tempFolder();
  const bytes = Array.from({ length: 256 }, (_, byte) => byte);
  let next = 256;
  const isPrintable = (byte: number) =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  const alphabet = bytes.map((byte) => String.fromCodePoint(isPrintable(byte) ? byte : next++));
  const merges = [
    ['h', 'e'],
    ['l', 'l'],
    ['he', 'll'],
    ['hell', 'o'],
    ['Ġ', 'w'],
    ['.', 'm'],
    ['Ã', '©'],
  ];
  const vocab = Object.fromEntries(
    [...alphabet, ...merges.map((pair) => pair.join(''))].map((token, id) => [token, id]),
  );
  const first = Object.keys(vocab).length;
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };
  const bos = { SpecialToken: { id: '<s>', type_id: 0 } };
  const processor = {
    type: 'TemplateProcessing',
    single: [bos, { Sequence: { id: 'A', type_id: 0 } }],
    pair: [bos, { Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 1 } }],
    special_tokens: { '<s>': { id: '<s>', ids: [first + 3], tokens: ['<s>'] } },
  };
  const tokenizer = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: specials.map((content, index) => ({ id: first + index, content, ...flags })),
    normalizer: { type: 'NFC' },
    pre_tokenizer: byteLevel,
    post_processor: options.bosByProcessor === true ? processor : byteLevel,
    decoder: byteLevel,
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      fuse_unk: false,
      byte_fallback: false,
      vocab,
      merges,
    },
  };
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
  const config = { eos_token: '<|im_end|>', bos_token: '<s>', pad_token: '<|endoftext|>', ...options.config };
  writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify(config));
  if (options.template === undefined)
    cpSync(join(templates, 'qwen3_5_think.jinja'), join(folder, 'chat_template.jinja'));
  else if (options.template !== null) writeFileSync(join(folder, 'chat_template.jinja'), options.template);
  return folder;
}

/** The smallest honest ChatML template. */
export const chatMl =
  '{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}';

export const call = (): CallContext => ({ signal: new AbortController().signal, progress: () => undefined });

export async function openDatasets(
  home = tempFolder(),
): Promise<{ datasets: Datasets; context: CoreContext }> {
  const paths = openHome(home);
  const db = await openDatabase(paths.database);
  closers.push(() => db.close());
  const context: CoreContext = {
    home: paths,
    db,
    history: { db, path: paths.database },
    closeSoon: () => undefined,
    log: () => undefined,
    work: createWork(() => undefined),
    onClose: () => undefined,
  };
  return { datasets: new Datasets(context), context };
}

export function request(paths: string[], modelDir: string, more: Partial<ImportRequest> = {}): ImportRequest {
  return {
    paths,
    modelDir,
    name: undefined,
    strict: false,
    read: defaultReadOptions,
    tokens: defaultTokenOptions,
    ...more,
  };
}

/** All batches of a reader, joined. */
export async function joined<T>(batches: AsyncIterable<T[]>): Promise<T[]> {
  const items: T[] = [];
  for await (const batch of batches) items.push(...batch);
  return items;
}

/** The content in reads of so many bytes. */
// A source of bytes is asynchronous, even one that has them all.
// eslint-disable-next-line @typescript-eslint/require-await
export async function* inChunks(content: string | Uint8Array, chunkBytes = 1 << 20): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(content as string);
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}

/** The rows that were skipped where an import kept none. @throws where it kept some */
export async function allSkipped(...args: Parameters<typeof importText>): Promise<SkippedRow[]> {
  const error: unknown = await importText(...args).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'noUsableRows' });
  return (error as TesseraError).details?.['skipped'] as SkippedRow[];
}

/** Imports one file of this content and returns what became of it. */
export async function importText(
  content: string | Uint8Array,
  options: { name?: string; model?: string; more?: Partial<ImportRequest> } = {},
): Promise<ImportOutcome & { skipped: SkippedRow[]; datasets: Datasets }> {
  const name = options.name ?? 'rows.jsonl';
  const folder = writeFiles({ [name]: content });
  const { datasets } = await openDatasets();
  const model = options.model ?? makeModel({ template: chatMl });
  const outcome = await datasets.import(request([join(folder, name)], model, options.more), call());
  return { ...outcome, datasets, skipped: await datasets.skipped(outcome.dataset.cacheKey, 0, 1000) };
}
