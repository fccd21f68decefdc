import { z } from 'zod';
import { call } from './channel.ts';
import { kernelRow, numericsTest } from './runs.ts';

/** Why the history is a copy that can only be read. */
export const historyTrouble = z.object({
  code: z.enum(['historyLocked', 'historyDamaged']),
  message: z.string(),
  hint: z.string(),
});
export type HistoryTrouble = z.infer<typeof historyTrouble>;

const salvaged = z.object({ rows: z.int(), damagedTables: z.array(z.string()) });

export const systemInfo = z.object({
  version: z.string(),
  pid: z.int(),
  home: z.string(),
  startedAtMs: z.int(),
  /** Names of the work that keeps the core alive. */
  work: z.array(z.string()),
  historyTrouble: historyTrouble.optional(),
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
    kernels: z.array(kernelRow.extend({ device: z.string().optional() }).loose()),
  }),
  disk: z.object({ home: z.string(), freeBytes: z.number(), totalBytes: z.number() }),
  memory: z.object({ freeBytes: z.number(), totalBytes: z.number() }),
  cpu: z.object({ name: z.string(), cores: z.int() }),
  problems: z.array(problem),
});
export type DoctorReport = z.infer<typeof doctorReport>;

const measurement = z.object({
  numerics: numericsTest,
  /** Of a large product and a large copy; absent where the device has no room for them. */
  roof: z.object({ flopsPerSecond: z.number(), bytesPerSecond: z.number() }).optional(),
});
export type Measurement = z.infer<typeof measurement>;

export const systemChannels = {
  'system:info': call({ args: z.object({}), result: systemInfo }),
  /** Writes what can be read of the history into a new file of this folder. */
  'system:copy-history': call({
    args: z.object({ folder: z.string().min(1) }),
    result: salvaged.extend({ path: z.string() }),
  }),
  /** Puts what can be read in the place of a damaged history; the core then ends, and the next one opens it. */
  'system:mend-history': call({ args: z.object({}), result: salvaged.extend({ aside: z.string() }) }),
  /** Ends a core that shows a copy, so that the next one opens the history itself; not while it is still held. */
  'system:reopen-history': call({ args: z.object({}), result: z.object({ isHeld: z.boolean() }) }),
  'system:doctor': call({ args: z.object({}), result: doctorReport }),
  /** Tests every kernel of a device and measures its matrix rate and copy bandwidth; takes seconds. */
  'system:measure': call({ args: z.object({ device: z.string().min(1) }), result: measurement }),
};
