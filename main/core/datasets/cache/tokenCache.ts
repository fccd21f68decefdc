import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TesseraError } from '../../../contract/errors.ts';
import type { Warning } from '../problems.ts';
import { SafetensorsFile } from '../../safetensors.ts';

/** How an example was made: what is too long is truncated (chats, completions) or split (text). */
export const exampleKinds = ['chat', 'completion', 'text'] as const;
export type ExampleKind = (typeof exampleKinds)[number];

interface Detection {
  format: string;
  reason: string;
  confidence: number;
  count: number;
}

export interface SourceFile {
  path: string;
  sizeBytes: number;
  sha256: string;
  /** What `sourceAt` of its examples counts. */
  unit: 'line' | 'row';
}

export interface LengthSummary {
  min: number;
  p50: number;
  p90: number;
  p99: number;
  max: number;
  /** [upTo, count]: examples longer than the previous bound and at most `upTo` tokens long. */
  histogram: [number, number][];
}

/** `cache.json`: what the shards hold and of what they were made. */
export interface CacheManifest {
  version: 1;
  key: string;
  hashes: { dataset: string; template: string; tokenizer: string; options: string };
  options: Record<string, unknown>;
  model: string;
  /** The rows' kind, `mixed` where there are several, `none` where no row was kept; and how many of each. */
  format: string;
  formats: Record<string, number>;
  /** How the kept rows were recognised, most frequent first; confidence 0 to 1. */
  detections: Detection[];
  examples: number;
  tokens: number;
  supervisedTokens: number;
  numSkipped: number;
  warnings: Warning[];
  sizeBytes: number;
  lengths: LengthSummary;
  files: SourceFile[];
  shards: { file: string; examples: number; tokens: number; sizeBytes: number }[];
}

export interface CachedExample {
  ids: Int32Array;
  supervised: Uint8Array;
  kind: ExampleKind;
  file: string;
  place: { line: number } | { row: number };
}

export const manifestName = 'cache.json';

/**
 * A finished token cache. Shards hold `input_ids` I32 [tokens], `supervised` U8 [tokens], `offsets` I64
 * [examples + 1], and per example `kind` U8, `source_file` I32 (index into `files`), `source_at` I64.
 */
export class TokenCache {
  readonly dir: string;
  readonly manifest: CacheManifest;
  private readonly shards: (SafetensorsFile | undefined)[] = [];

  /** @throws {TesseraError} `badCache` where the manifest or a shard is missing */
  constructor(dir: string) {
    this.dir = dir;
    this.manifest = readManifest(dir);
    for (const { file } of this.manifest.shards) {
      if (!existsSync(join(dir, file))) {
        throw new TesseraError(
          'badCache',
          `the token cache ${dir} lacks ${file}`,
          'Import the dataset again.',
        );
      }
    }
  }

  /** Tokens of each example. */
  lengths(): Int32Array {
    const lengths = new Int32Array(this.manifest.examples);
    let at = 0;
    for (const index of this.manifest.shards.keys()) {
      const offsets = this.shard(index).read('offsets', 'I64');
      for (let i = 1; i < offsets.length; i++)
        lengths[at++] = Number((offsets[i] ?? 0n) - (offsets[i - 1] ?? 0n));
    }
    return lengths;
  }

  /** Supervised tokens of each example. */
  supervisedCounts(): Int32Array {
    const counts = new Int32Array(this.manifest.examples);
    let at = 0;
    for (const { offsets, supervised } of this.parts()) {
      for (let i = 1; i < offsets.length; i++) {
        let sum = 0;
        for (let t = offsets[i - 1] ?? 0; t < (offsets[i] ?? 0); t++) sum += supervised[t] ?? 0;
        counts[at++] = sum;
      }
    }
    return counts;
  }

  /** Shard by shard: where its examples begin, in tokens of the shard, and its tokens. */
  *parts(): Generator<{ offsets: number[]; ids: Int32Array; supervised: Uint8Array }> {
    for (const index of this.manifest.shards.keys()) {
      const shard = this.shard(index);
      yield {
        offsets: Array.from(shard.read('offsets', 'I64'), Number),
        // Whole shards are large: each array is read when it is asked for.
        get ids() {
          return shard.read('input_ids', 'I32');
        },
        get supervised() {
          return shard.read('supervised', 'U8');
        },
      };
    }
  }

  /** For each example the index of its first target (a supervised token that is not the first), else its length. */
  firstTargets(): Int32Array {
    const first = new Int32Array(this.manifest.examples);
    let at = 0;
    for (const index of this.manifest.shards.keys()) {
      const shard = this.shard(index);
      const offsets = shard.read('offsets', 'I64');
      const supervised = shard.read('supervised', 'U8');
      for (let i = 1; i < offsets.length; i++) {
        const begin = Number(offsets[i - 1]);
        const end = Number(offsets[i]);
        const found = supervised.indexOf(1, begin + 1);
        first[at++] = (found < 0 || found > end ? end : found) - begin;
      }
    }
    return first;
  }

  /** Of each example its file, as an index into the manifest's `files`. */
  sourceFiles(): Int32Array {
    return this.joined(new Int32Array(this.manifest.examples), 'source_file', 'I32');
  }

  kinds(): Uint8Array {
    return this.joined(new Uint8Array(this.manifest.examples), 'kind', 'U8');
  }

  /** A value of every example, shard after shard. */
  private joined<T extends Int32Array | Uint8Array>(values: T, name: string, dtype: 'I32' | 'U8'): T {
    let at = 0;
    for (const index of this.manifest.shards.keys()) {
      const part = this.shard(index).read(name, dtype);
      values.set(part, at);
      at += part.length;
    }
    return values;
  }

  /** @throws {RangeError} where there is no such example */
  example(index: number): CachedExample {
    let local = index;
    const shardIndex = this.manifest.shards.findIndex(({ examples }) => {
      if (local < examples) return true;
      local -= examples;
      return false;
    });
    if (index < 0 || shardIndex < 0)
      throw new RangeError(`example ${String(index)} of ${String(this.manifest.examples)}`);
    const shard = this.shard(shardIndex);
    const [begin = 0, end = 0] = Array.from(shard.read('offsets', 'I64', local, local + 2), Number);
    const file = this.manifest.files[shard.read('source_file', 'I32', local, local + 1)[0] ?? 0];
    const at = Number(shard.read('source_at', 'I64', local, local + 1)[0]);
    return {
      ids: shard.read('input_ids', 'I32', begin, end),
      supervised: shard.read('supervised', 'U8', begin, end),
      kind: exampleKinds[shard.read('kind', 'U8', local, local + 1)[0] ?? 0] ?? 'chat',
      file: file?.path ?? '',
      place: file?.unit === 'row' ? { row: at } : { line: at },
    };
  }

  close(): void {
    for (const shard of this.shards) shard?.close();
    this.shards.length = 0;
  }

  private shard(index: number): SafetensorsFile {
    const name = this.manifest.shards[index]?.file ?? '';
    return (this.shards[index] ??= new SafetensorsFile(join(this.dir, name)));
  }
}

export function readManifest(dir: string): CacheManifest {
  const path = join(dir, manifestName);
  try {
    const manifest = JSON.parse(readFileSync(path, 'utf8')) as CacheManifest;
    // Caches made before detections were kept have none.
    if ((manifest.version as number) === 1)
      return { ...manifest, detections: (manifest as Partial<CacheManifest>).detections ?? [] };
  } catch {
    // Missing, cut short or foreign: one message, since the way out is the same.
  }
  throw new TesseraError(
    'badCache',
    `${path} is missing or not of this version`,
    'Import the dataset again.',
  );
}
