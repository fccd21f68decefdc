import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import { themeChoice } from './contract/host.ts';
import { makeFolder } from './core/makeFolder.ts';

const rectangle = z.object({ x: z.number(), y: z.number(), width: z.number(), height: z.number() });
const schema = z.object({
  theme: themeChoice.catch('system'),
  /** The graphics driver kept failing: windows are drawn without it. */
  drawsInSoftware: z.boolean().catch(false),
  /** The page is drawn smaller than usual because its window is small. */
  isFitted: z.boolean().catch(false),
  window: z.object({ bounds: rectangle, isMaximized: z.boolean() }).optional().catch(undefined),
});
type Values = z.infer<typeof schema>;

/** What a window remembers between starts. A damaged file counts as none: nothing here is worth a question. */
export interface Settings {
  get: () => Values;
  update: (change: Partial<Values>) => void;
}

export function openSettings(path: string): Settings {
  let values = read(path);
  return {
    get: () => values,
    update: (change) => {
      values = { ...values, ...change };
      try {
        makeFolder(dirname(path));
        writeFileSync(`${path}.new`, JSON.stringify(values, null, 2));
        renameSync(`${path}.new`, path);
      } catch (error) {
        // A home that cannot be written is the core's to report; the window goes on unremembered.
        process.stderr.write(`[main ${process.pid}] window state not saved: ${String(error)}\n`);
      }
    },
  };
}

function read(path: string): Values {
  try {
    return schema.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return schema.parse({});
  }
}
