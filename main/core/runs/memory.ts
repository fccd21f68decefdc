import { z } from 'zod';
import { askEngine } from '../engine/askEngine.ts';
import { engineArguments, type RunInputs } from './engineArguments.ts';

const forecast = z.looseObject({
  /** Bytes by part and their `total`. */
  memory: z.record(z.string(), z.number()),
  /** The policy of recomputation that fits. */
  recompute: z.string(),
  /** Every micro-batch is computed as long as the longest: its cost does not depend on what it holds. */
  fixedShapes: z.boolean(),
  /** What a checkpoint of this run takes on disk. */
  checkpointBytes: z.number().optional(),
});
export type EngineForecast = z.infer<typeof forecast>;

/** The engine's own plan of a run. Nothing is allocated or trained. */
export async function forecastRun(inputs: RunInputs, signal?: AbortSignal): Promise<EngineForecast> {
  const args = [...engineArguments(inputs), '--forecast'];
  return askEngine(forecast, args, { ...(signal && { signal }) });
}
