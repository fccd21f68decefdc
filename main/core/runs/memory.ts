import { z } from 'zod';
import { shardings } from '../../contract/recipe.ts';
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
  /** What ranks keep a share of; absent with one. */
  sharding: z.enum(shardings).optional(),
  /** Where it does not fit: how many devices like this one would do. */
  ranksThatWouldDo: z.int().optional(),
});
export type EngineForecast = z.infer<typeof forecast>;

/** The engine's own plan of a run. Nothing is allocated or trained. */
export async function forecastRun(inputs: RunInputs, signal?: AbortSignal): Promise<EngineForecast> {
  const args = [...engineArguments(inputs), '--forecast'];
  return askEngine(forecast, args, { ...(signal && { signal }) });
}
