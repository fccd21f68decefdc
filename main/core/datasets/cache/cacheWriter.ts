import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { writeSafetensors } from '../../safetensors.ts';
import { exampleKinds, manifestName, type CacheManifest, type ExampleKind } from './tokenCache.ts';
import { LengthCounter } from './lengths.ts';

export interface NewExample {
  ids: Int32Array;
  supervised: Uint8Array;
  kind: ExampleKind;
  /** Index into the dataset's files, and the line or row there. */
  sourceFile: number;
  sourceAt: number;
}

/** What the writer cannot know of itself. */
export type CacheDescription = Omit<
  CacheManifest,
  'version' | 'examples' | 'tokens' | 'supervisedTokens' | 'sizeBytes' | 'lengths' | 'shards'
>;

/**
 * Writes a token cache shard by shard into `<dir>.partial`; `finish` syncs it and renames it to `dir`, so that a
 * cache is whole or not there. Memory: one shard.
 */
export class CacheWriter {
  readonly lengths = new LengthCounter();
  tokens = 0;
  supervisedTokens = 0;
  private readonly dir: string;
  readonly partial: string;
  private readonly maxShardTokens: number;
  private readonly shards: CacheManifest['shards'] = [];
  private pending: NewExample[] = [];
  private pendingTokens = 0;

  constructor(dir: string, maxShardTokens = 8 << 20) {
    this.dir = dir;
    this.partial = `${dir}.partial`;
    this.maxShardTokens = maxShardTokens;
    rmSync(this.partial, { recursive: true, force: true });
    mkdirSync(this.partial, { recursive: true });
  }

  /** @param targets supervised tokens that something predicts: the first token of an example is none */
  add(example: NewExample, targets: number): void {
    this.pending.push(example);
    this.pendingTokens += example.ids.length;
    this.tokens += example.ids.length;
    this.supervisedTokens += targets;
    this.lengths.add(example.ids.length);
    if (this.pendingTokens >= this.maxShardTokens) this.flush();
  }

  finish(about: CacheDescription): CacheManifest {
    if (this.pending.length > 0) this.flush();
    const manifest: CacheManifest = {
      version: 1,
      ...about,
      examples: this.shards.reduce((sum, shard) => sum + shard.examples, 0),
      tokens: this.tokens,
      supervisedTokens: this.supervisedTokens,
      sizeBytes: this.shards.reduce((sum, shard) => sum + shard.sizeBytes, 0),
      lengths: this.lengths.summary(),
      shards: this.shards,
    };
    writeFileSync(join(this.partial, manifestName), JSON.stringify(manifest, null, 1), { flush: true });
    rmSync(this.dir, { recursive: true, force: true });
    renameSync(this.partial, this.dir);
    syncFolder(dirname(this.dir));
    return manifest;
  }

  abandon(): void {
    rmSync(this.partial, { recursive: true, force: true });
  }

  private flush(): void {
    const { pending } = this;
    const file = `shard-${String(this.shards.length).padStart(5, '0')}.safetensors`;
    const path = join(this.partial, file);
    const offsets = new BigInt64Array(pending.length + 1);
    for (const [i, { ids }] of pending.entries()) offsets[i + 1] = (offsets[i] ?? 0n) + BigInt(ids.length);
    writeSafetensors(path, {
      input_ids: { dtype: 'I32', data: pending.map((example) => example.ids) },
      supervised: { dtype: 'U8', data: pending.map((example) => example.supervised) },
      offsets: { dtype: 'I64', data: offsets },
      kind: { dtype: 'U8', data: Uint8Array.from(pending, ({ kind }) => exampleKinds.indexOf(kind)) },
      source_file: { dtype: 'I32', data: Int32Array.from(pending, (example) => example.sourceFile) },
      source_at: { dtype: 'I64', data: BigInt64Array.from(pending, (example) => BigInt(example.sourceAt)) },
    });
    const { size: sizeBytes } = statSync(path);
    this.shards.push({ file, examples: pending.length, tokens: this.pendingTokens, sizeBytes });
    this.pending = [];
    this.pendingTokens = 0;
  }
}

/** A rename lasts only once its folder is on the disk. Windows has no such call and needs none. */
function syncFolder(dir: string): void {
  if (process.platform === 'win32') return;
  const descriptor = openSync(dir, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
