import { z } from 'zod';

/** What a plan asks of an engine, over all its epochs and ranks. */
export interface Load {
  /** Optimizer updates. */
  steps: number;
  bins: number;
  /** Computed, padding included. */
  positions: number;
  tokens: number;
  /** Sum over the placements of computed positions squared: what attention grows with. */
  squares: number;
  /** They work side by side; default 1. */
  ranks?: number;
}

const cost = z.number().nonnegative();

/** What training costs on one device with one model, budget, engine and set of kernels, learnt from measured steps. */
export const costModel = z.object({
  millisecondsPerStep: cost,
  millisecondsPerBin: cost,
  millisecondsPerPosition: cost,
  millisecondsPerToken: cost,
  millisecondsPerSquare: cost,
  /** Half of the width that nine in ten forecasts should fall into, as a share of the forecast. */
  relativeError: cost,
  /** Steps of different shapes that were timed for it. */
  measuredSteps: z.int(),
  /** Runs whose time has corrected it since. */
  runs: z.int(),
  device: z.string(),
  /** Of the newest measurement or run. */
  atMs: z.int(),
});
export type CostModel = z.infer<typeof costModel>;
export type Costs = Omit<CostModel, 'device' | 'atMs'>;

/** Seconds that a plan's steps take, and the error that they are known with. */
export function secondsOf(costs: Costs, load: Load): { seconds: number; errorSeconds: number } {
  const { steps, bins, positions, tokens, squares, ranks = 1 } = load;
  const shared =
    bins * costs.millisecondsPerBin +
    positions * costs.millisecondsPerPosition +
    tokens * costs.millisecondsPerToken +
    squares * costs.millisecondsPerSquare;
  const seconds = (steps * costs.millisecondsPerStep + shared / ranks) / 1000;
  return { seconds, errorSeconds: seconds * costs.relativeError };
}
