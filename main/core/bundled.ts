import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { TesseraError } from '../contract/errors.ts';
import { programRoot } from './version.ts';

const assets = join(programRoot, 'assets');

/** The small model and the sample chats that come with the program. */
export function bundled(): { model: string; samples: string } {
  const models = join(assets, 'models');
  const name = existsSync(models)
    ? readdirSync(models)
        .sort()
        .find((entry) => existsSync(join(models, entry, 'config.json')))
    : undefined;
  if (name === undefined) {
    throw new TesseraError(
      'noBundledModel',
      `there is no model in ${models}`,
      'The installation is incomplete: fetch it again.',
    );
  }
  return { model: join(models, name), samples: join(assets, 'samples', 'chats.jsonl') };
}
