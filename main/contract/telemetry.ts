import { z } from 'zod';
import { stream } from './channel.ts';

/** What a GPU tells of itself; a field that it does not have is absent. */
const gpu = z.looseObject({
  index: z.int().optional(),
  name: z.string().optional(),
  utilization: z.number().optional(),
  memoryBytes: z.number().optional(),
  memoryTotalBytes: z.number().optional(),
  powerW: z.number().optional(),
  temperatureC: z.number().optional(),
  smClockMHz: z.number().optional(),
});

export const telemetry = z.object({
  atMs: z.number(),
  gpus: z.array(gpu),
  /** Why there are no GPUs in it. */
  reason: z.string().optional(),
  host: z.object({
    /** Share of all cores, 0 … 1. */
    cpuUtilization: z.number(),
    memoryBytes: z.number(),
    memoryTotalBytes: z.number(),
  }),
});
export type Telemetry = z.infer<typeof telemetry>;

export const telemetryChannels = {
  /** About ten a second where there is a GPU, one a second without; a slow reader gets the newest. */
  'telemetry:watch': stream({ args: z.object({}), event: telemetry, key: () => 'now' }),
};
