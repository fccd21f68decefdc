import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { PassThrough } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';

import { UnreadableFileError } from './rows.ts';

export type Compression = 'gzip' | 'zstd' | 'none';

const chunkBytes = 1 << 20;

/**
 * The file's bytes, decompressed; `onBytes` is told how many of the file itself were read.
 * @throws what the file system or the decompressor says, e.g. a .gz cut short
 */
export async function* readBytes(
  path: string,
  compression: Compression,
  onBytes: (numBytes: number) => void = () => undefined,
  signal?: AbortSignal,
): AsyncGenerator<Buffer> {
  const file = createReadStream(path, { highWaterMark: chunkBytes, ...(signal !== undefined && { signal }) });
  file.on('data', (chunk) => {
    onBytes(chunk.length);
  });
  if (compression === 'none') {
    file.pause();
    yield* file as AsyncIterable<Buffer>;
    return;
  }
  const options = { chunkSize: chunkBytes };
  const inflate = compression === 'gzip' ? createGunzip(options) : createZstdDecompress(options);
  const out = new PassThrough({ highWaterMark: chunkBytes });
  // The reader below sees the failure as the stream's own error.
  const done = pipeline(file, inflate, out).catch(() => undefined);
  try {
    yield* out as AsyncIterable<Buffer>;
    await done;
  } catch (error) {
    if (signal?.aborted === true) throw error;
    throw new UnreadableFileError(
      { line: 1 },
      `the ${compression} data is damaged: ${(error as Error).message}`,
    );
  }
}

/** SHA-256 of the file's own bytes, as hexadecimal digits. */
export async function hashFile(
  path: string,
  onBytes: (numBytes: number) => void = () => undefined,
  signal?: AbortSignal,
): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of readBytes(path, 'none', onBytes, signal)) hash.update(chunk);
  return hash.digest('hex');
}
