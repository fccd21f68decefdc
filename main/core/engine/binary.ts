import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { TesseraError } from '../../contract/errors.ts';
import { programRoot } from '../version.ts';

/**
 * The native program: `TESSERA_ENGINE`, else the repository's build, else beside the packaged app.
 * @throws {TesseraError} `noEngine`
 */
export function engineBinary(env: NodeJS.ProcessEnv = process.env): string {
  const file = process.platform === 'win32' ? 'tessera-engine.exe' : 'tessera-engine';
  if (env.TESSERA_ENGINE !== undefined && env.TESSERA_ENGINE !== '') {
    if (existsSync(env.TESSERA_ENGINE)) return env.TESSERA_ENGINE;
    throw new TesseraError('noEngine', `TESSERA_ENGINE names ${env.TESSERA_ENGINE}, which is not there`);
  }
  const places = [join(programRoot, 'build', file), join(programRoot, '..', 'engine', file)];
  const found = places.find((place) => existsSync(place));
  if (found !== undefined) return found;
  throw new TesseraError(
    'noEngine',
    `the engine is in none of ${places.join(', ')}`,
    'In a clone npm start builds it; elsewhere install Tessera again. TESSERA_ENGINE may name another.',
  );
}
