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

const problem = z.object({ code: z.string(), message: z.string(), hint: z.string().optional() });

export const doctorReport = z.object({
  gpus: z.array(z.record(z.string(), z.unknown())),
  /** What the engine opens at run time, and where it was found. */
  libraries: z.record(z.string(), z.unknown()),
  engine: z.object({
    version: z.string().optional(),
    path: z.string().optional(),
    backends: z.array(z.string()),
    kernels: z.array(z.record(z.string(), z.unknown())),
  }),
  disk: z.object({ home: z.string(), freeBytes: z.number(), totalBytes: z.number() }),
  memory: z.object({ freeBytes: z.number(), totalBytes: z.number() }),
  cpu: z.object({ name: z.string(), cores: z.int() }),
  problems: z.array(problem),
});
export type DoctorReport = z.infer<typeof doctorReport>;

export const systemChannels = {
  'system:info': call({ args: z.object({}), result: systemInfo }),
  'system:doctor': call({ args: z.object({}), result: doctorReport }),
};
