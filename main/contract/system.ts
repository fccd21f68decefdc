import { z } from 'zod';
import { call } from './channel.ts';

export const systemInfo = z.object({
  version: z.string(),
  pid: z.int(),
  home: z.string(),
  startedAtMs: z.int(),
  /** Names of the work that keeps the core alive. */
  work: z.array(z.string()),
});

export const systemChannels = {
  'system:info': call({ args: z.object({}), result: systemInfo }),
};
