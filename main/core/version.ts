import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The repository, or the folder of the packaged program. */
export const programRoot = join(import.meta.dirname, '..', '..');

export const version = (
  JSON.parse(readFileSync(join(programRoot, 'package.json'), 'utf8')) as { version: string }
).version;
