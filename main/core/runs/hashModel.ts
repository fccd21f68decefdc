import { createHash } from 'node:crypto';
import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';

const sampleBytes = 4096;
const numSamples = 256;

/**
 * SHA-256 of a model folder: its configuration whole, and of each weight file the name, the size, the safetensors
 * header's beginning and 256 blocks spread over it. A retrained model has another hash; tens of gigabytes take
 * milliseconds.
 */
export function hashModel(folder: string): string {
  const hash = createHash('sha256');
  for (const name of readdirSync(folder).sort()) {
    if (name === 'config.json') hash.update(name).update(readFileSync(join(folder, name)));
    if (name.endsWith('.safetensors')) hashSampled(hash.update(name), join(folder, name));
  }
  return hash.digest('hex');
}

function hashSampled(hash: ReturnType<typeof createHash>, path: string): void {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const block = Buffer.alloc(sampleBytes);
    hash.update(String(size));
    for (let i = 0; i < numSamples; i += 1) {
      const at = Math.floor((i * Math.max(0, size - sampleBytes)) / (numSamples - 1));
      hash.update(block.subarray(0, readSync(file, block, 0, sampleBytes, at)));
    }
  } finally {
    closeSync(file);
  }
}
