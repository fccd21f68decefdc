import { z } from 'zod';
import { call, stream } from './channel.ts';

/** What a GPU tells of itself; a field that it does not have is absent. */
export const gpuTelemetry = z.looseObject({
  /** NVML's number of it. */
  index: z.int().optional(),
  /** `cuda:0`, as a run names it; absent where CUDA does not show it here. */
  device: z.string().optional(),
  name: z.string().optional(),
  pciBusId: z.string().optional(),
  /** It does not answer any more: fallen off the bus, reset, or held by somebody else. */
  lost: z.boolean().optional(),
  /** Percent of the time that a kernel ran. */
  utilization: z.number().optional(),
  memoryBytes: z.number().optional(),
  memoryTotalBytes: z.number().optional(),
  powerW: z.number().optional(),
  powerLimitW: z.number().optional(),
  /** Since the driver's start. */
  energyJ: z.number().optional(),
  temperatureC: z.number().optional(),
  smClockMHz: z.number().optional(),
  memoryClockMHz: z.number().optional(),
  /** Bits of nvmlClocksThrottleReasons. */
  throttleReasons: z.number().optional(),
  pcieSentBytesPerSecond: z.number().optional(),
  pcieReceivedBytesPerSecond: z.number().optional(),
  /** Since the driver's start. */
  eccCorrected: z.number().optional(),
  eccUncorrected: z.number().optional(),
});
export type GpuTelemetry = z.infer<typeof gpuTelemetry>;

export const telemetry = z.object({
  atMs: z.number(),
  gpus: z.array(gpuTelemetry),
  /** Why there are no GPUs in it. */
  reason: z.string().optional(),
  host: z.object({
    /** Share of all cores, 0 … 1. */
    cpuUtilization: z.number(),
    memoryBytes: z.number(),
    memoryTotalBytes: z.number(),
    /** Where the home lies. */
    diskFreeBytes: z.number(),
  }),
});
export type Telemetry = z.infer<typeof telemetry>;

const numbers = z.instanceof<typeof Float64Array<ArrayBufferLike>>(Float64Array);

/** One field of one source (`host`, `gpu0`) over time; what a source never said is not there. */
export const telemetrySeries = z.object({
  source: z.string(),
  field: z.string(),
  atMs: numbers,
  minimum: numbers,
  maximum: numbers,
  mean: numbers,
});
export type TelemetrySeries = z.infer<typeof telemetrySeries>;

/** What holds a GPU's clocks down, from the bits of NVML's clock event reasons (nvml.h). */
export function throttleReasons(bits: number): string[] {
  const names: [number, string][] = [
    [0x2, 'application clocks'],
    [0x4, 'power cap'],
    [0x8, 'hardware slowdown'],
    [0x10, 'sync boost'],
    [0x20, 'software thermal'],
    [0x40, 'hardware thermal'],
    [0x80, 'power brake'],
    [0x100, 'display clocks'],
  ];
  return names.filter(([bit]) => (bits & bit) !== 0).map(([, name]) => name);
}

export const telemetryChannels = {
  /** About ten a second where there is a GPU, one a second without; a slow reader gets the newest. */
  'telemetry:watch': stream({ args: z.object({}), event: telemetry, key: () => 'now' }),
  /** What was stored with a run, merged to at most so many points a field with their extremes. */
  'telemetry:of-run': call({
    args: z.object({
      id: z.string().min(1),
      maxPoints: z.int().positive().default(600),
      /** Only this one (`host`, `gpu0`); of a long run one is read far sooner than all. */
      source: z.string().optional(),
    }),
    result: z.object({
      series: z.array(telemetrySeries),
      /** Everything that told of itself while the run trained. */
      sources: z.array(z.string()),
    }),
  }),
};
