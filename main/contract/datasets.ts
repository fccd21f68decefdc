import { z } from 'zod';
import { call, stream } from './channel.ts';

const place = { file: z.string(), line: z.int().optional(), row: z.int().optional() };
const count = z.int().nonnegative();

export const skippedRow = z.object({ ...place, reason: z.string() });
export const dataWarning = z.object({ code: z.string(), count, firstAt: z.object(place) });

/** How rows were recognised, and why; confidence 0 to 1. */
export const detection = z.object({ format: z.string(), reason: z.string(), confidence: z.number(), count });

export const superviseSchema = z.object({
  turns: z.enum(['assistant', 'last', 'all']).default('assistant'),
  reasoning: z.boolean().default(true),
});

/** A dataset: files as they were imported, and the counts of its token cache. */
export const dataset = z.object({
  id: z.string(),
  name: z.string(),
  /** The rows' kind (`messages`, `sharegpt`, `alpaca`, `completion`, `text`), `mixed`, or `none`. */
  format: z.string(),
  /** Rows kept. */
  rows: count,
  tokens: count,
  /** Targets: supervised tokens that a token before them predicts. */
  supervisedTokens: count,
  numSkipped: count,
  createdAtMs: z.int(),
  sizeBytes: count,
});
export type Dataset = z.infer<typeof dataset>;

export const lengthSummary = z.object({
  min: count,
  p50: count,
  p90: count,
  p99: count,
  max: count,
  histogram: z.array(z.tuple([count, count])),
});

const mapping = {
  /** From a name that Tessera knows (`prompt`, `text`, …) to the file's own column. */
  columns: z.record(z.string(), z.string()).default({}),
  /** From a role as written to `system`, `user`, `assistant` or `tool`. */
  roles: z.record(z.string(), z.string()).default({}),
};

export const importArgs = z.object({
  paths: z.array(z.string()).min(1),
  name: z.string().min(1).optional(),
  /** A file's format (`dataFormats`) or a row's (`messages`, …). */
  format: z.string().optional(),
  /** A dataset of which model, template and supervision are taken. */
  like: z.string().optional(),
  /** A model folder; absent: the bundled model. */
  model: z.string().optional(),
  template: z
    .object({ name: z.string().optional(), arguments: z.record(z.string(), z.unknown()).optional() })
    .default({}),
  supervise: superviseSchema.prefault({}),
  ...mapping,
  maxFieldBytes: z.int().positive().optional(),
  strict: z.boolean().default(false),
});
export type ImportArgs = z.output<typeof importArgs>;

export const importResult = z.object({
  dataset,
  /** At most the first 100,000; `dataset.numSkipped` counts all. */
  skipped: z.array(skippedRow),
  warnings: z.array(dataWarning),
  detections: z.array(detection),
});

const id = z.object({ id: z.string() });

const integers = z.instanceof<typeof Int32Array<ArrayBufferLike>>(Int32Array);
const octets = z.instanceof<typeof Uint8Array<ArrayBufferLike>>(Uint8Array);
const at = { index: count, ...place };

/** The first rows of files as they are, and what a mapping of columns and roles would make of them. */
export const rowSample = z.object({
  rows: count,
  columns: z.array(
    z.object({
      name: z.string(),
      type: z.string(),
      /** Rows that have it. */
      filled: count,
      samples: z.array(z.string()),
    }),
  ),
  /** Roles as the messages have them. */
  roles: z.array(z.object({ role: z.string(), count })),
  formats: z.array(detection),
  skipped: z.array(z.object({ reason: z.string(), count })),
  /** The first row that can be learned from, as the model would read it. */
  preview: z.array(z.object({ text: z.string(), isSupervised: z.boolean() })).optional(),
});
export type RowSample = z.infer<typeof rowSample>;

/** The first rows of files, as they were recognised; a problem says why a row cannot be used. */
export const filePreview = z.object({
  rows: z.array(
    z.object({
      ...place,
      format: z.string().optional(),
      prompt: z.string().optional(),
      answer: z.string().optional(),
      problem: z.string().optional(),
    }),
  ),
  isAll: z.boolean(),
});
export type FilePreview = z.infer<typeof filePreview>;
export type PreviewedRow = FilePreview['rows'][number];

/** A row of the grid: its size, and how what is read and what is learned begin. */
export const rowPreview = z.object({
  ...at,
  kind: z.string(),
  tokens: count,
  supervised: count,
  prompt: z.string(),
  answer: z.string(),
});
export type RowPreview = z.infer<typeof rowPreview>;

/** One example, token by token; token t has the bytes `byteOffsets[t]` … `byteOffsets[t + 1]`. */
export const exampleTokens = z.object({
  ...at,
  kind: z.string(),
  ids: integers,
  supervised: octets,
  /** 1 where the vocabulary added the token by name (`<|im_end|>`). */
  special: octets,
  bytes: octets,
  byteOffsets: integers,
});
export type ExampleTokens = z.infer<typeof exampleTokens>;

export const whyNames = [
  'template',
  'header',
  'system',
  'user',
  'tool',
  'assistant',
  'reasoning',
  'toolCall',
  'endOfTurn',
  'other',
] as const;

/** Where each token came from, found by rendering the row again with its origins followed. */
export const exampleOrigins = z.object({
  /** Tokens `from` … `to` (exclusive) of one message, or of the template itself (no `message`). */
  turns: z.array(z.object({ role: z.string(), message: count.optional(), from: count, to: count })),
  /** By token, an index into `whyNames`. */
  why: octets,
});
export type ExampleOrigins = z.infer<typeof exampleOrigins>;

const example = id.extend({ index: count });

/** An import that ended with the core it ran in; nothing half-written of it is left. */
export const interruptedImport = z.object({ key: z.string(), startedAtMs: z.number(), args: importArgs });
export type InterruptedImport = z.infer<typeof interruptedImport>;

export const datasetChannels = {
  'datasets:import': call({ args: importArgs, result: importResult }),
  'datasets:list': call({
    args: z.object({}),
    result: z.object({ datasets: z.array(dataset), interrupted: z.array(interruptedImport).optional() }),
  }),
  /** Takes an interrupted import off the list. */
  'datasets:forget-import': call({
    args: z.object({ key: z.string().regex(/^[0-9a-f]{16}$/) }),
    result: z.object({ ok: z.literal(true) }),
  }),
  'datasets:show': call({
    args: id,
    result: z.object({
      dataset,
      lengths: lengthSummary,
      formats: z.record(z.string(), count),
      detections: z.array(detection),
      warnings: z.array(dataWarning),
      files: z.array(z.object({ path: z.string(), sizeBytes: count })),
      options: z.record(z.string(), z.unknown()),
      model: z.string(),
    }),
  }),
  'datasets:skipped': call({
    args: id.extend({ from: count.default(0), count: count.max(10_000).default(1000) }),
    result: z.object({ skipped: z.array(skippedRow) }),
  }),
  'datasets:rows': call({
    args: id.extend({ from: count.default(0), count: count.max(1000).default(10) }),
    result: z.object({
      rows: z.array(
        z.object({
          index: count,
          ...place,
          text: z.string(),
          tokens: z.array(z.object({ id: z.int(), text: z.string(), supervised: z.boolean() })),
        }),
      ),
    }),
  }),
  'datasets:previews': call({
    args: id.extend({ indices: z.array(count).max(1000) }),
    result: z.object({ rows: z.array(rowPreview) }),
  }),
  'datasets:example': call({ args: example, result: exampleTokens }),
  'datasets:origins': call({ args: example, result: exampleOrigins }),
  /** The row as the file has it. */
  'datasets:source': call({ args: example, result: z.object({ json: z.string() }) }),
  /** Tokens and supervised tokens of each example. */
  'datasets:lengths': call({
    args: id,
    result: z.object({ lengths: integers, supervised: integers }),
  }),
  /** What a budget cuts off where examples are truncated. */
  'datasets:cut': call({
    args: id.extend({ budget: z.int().positive() }),
    result: z.object({ examples: count, tokens: count, supervisedTokens: count }),
  }),
  /** Length histograms of the datasets whose tokens are there, by id. */
  'datasets:histograms': call({
    args: z.object({}),
    result: z.object({ histograms: z.record(z.string(), lengthSummary.shape.histogram) }),
  }),
  'datasets:sample': call({
    args: z.object({
      source: z.union([z.object({ dataset: z.string() }), z.object({ paths: z.array(z.string()).min(1) })]),
      ...mapping,
      count: count.max(1000).default(200),
    }),
    result: rowSample,
  }),
  /** The first rows of files, within a second, whether or not they are being imported. */
  'datasets:preview': call({
    args: z.object({ paths: z.array(z.string()).min(1), ...mapping, count: count.max(1000).default(500) }),
    result: filePreview,
  }),
  /** Examples that hold a text, whatever the case of its letters, in order, as they are found. */
  'datasets:search': stream({
    args: id.extend({ text: z.string().min(1).max(1000) }),
    event: z.object({ matches: z.array(count), scanned: count, total: count }),
  }),
  'datasets:remove': call({ args: id, result: z.object({ ok: z.literal(true), removed: dataset }) }),
};
