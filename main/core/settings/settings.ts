import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { TesseraError } from '../../contract/errors.ts';
import { issueWords } from '../../contract/issueWords.ts';
import { settingsSchema, type CoreSettings } from '../../contract/settings.ts';

export interface SettingsStore {
  file: string;
  get: () => CoreSettings;
  /** @throws {TesseraError} `badSettings`, `notWritable` */
  set: (change: Partial<CoreSettings>) => CoreSettings;
}

/**
 * The settings of a home. A file that cannot be read is put aside and the defaults hold: no setting is worth a core
 * that does not start.
 */
export function openSettings(file: string, log: (message: string) => void): SettingsStore {
  let values = read(file, log);
  return {
    file,
    get: () => values,
    set: (change) => {
      const parsed = settingsSchema.safeParse({ ...values, ...change });
      if (!parsed.success) {
        const [issue] = parsed.error.issues;
        throw new TesseraError('badSettings', `'${issue?.path.join('.') ?? ''}' ${issueWords(issue)}`);
      }
      try {
        writeFileSync(`${file}.new`, `${JSON.stringify(parsed.data, null, 2)}\n`);
        renameSync(`${file}.new`, file);
      } catch (error) {
        const hint = 'Mend the permissions of its folder, or free some space.';
        throw new TesseraError('notWritable', `${file} cannot be written: ${(error as Error).message}`, hint);
      }
      values = parsed.data;
      return values;
    },
  };
}

function read(file: string, log: (message: string) => void): CoreSettings {
  if (!existsSync(file)) return settingsSchema.parse({});
  try {
    return settingsSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    const aside = `${file}.unreadable`;
    try {
      renameSync(file, aside);
    } catch {
      // It stays where it is; the defaults hold all the same.
    }
    log(
      `${file} cannot be read (${(error as Error).message.split('\n')[0] ?? ''}); it is now ${aside}, defaults hold`,
    );
    return settingsSchema.parse({});
  }
}
