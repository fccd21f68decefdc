import type { PackingSummary } from '../../contract/packing.ts';
import { fill, loadOf } from './forecast.ts';
import { biasMeaning, orderBias } from './orderBias.ts';
import { planPacking, type PackingOptions, type Plan } from './plan.ts';
import type { Examples } from './pieces.ts';

/** Packs, takes the time, and puts the plan into numbers. */
export function packAndSummarise(input: Examples & PackingOptions): { plan: Plan; summary: PackingSummary } {
  const startedAtMs = performance.now();
  const plan = planPacking(input);
  const seconds = (performance.now() - startedAtMs) / 1000;
  const {
    strategy,
    budget,
    epochs,
    ranks,
    gradAccumulation,
    examples,
    bins,
    steps,
    tokens,
    dropped,
    truncated,
  } = plan;
  const bias = orderBias(plan);
  return {
    plan,
    summary: {
      ...{ strategy, budget, epochs, ranks, gradAccumulation, examples, bins, steps, tokens },
      positions: plan.positionsTotal,
      squares: loadOf(plan).squares,
      fill: fill(plan),
      seconds,
      orderBias: { ...bias, meaning: biasMeaning(bias, plan.length.length, bins) },
      ...{ dropped, truncated },
    },
  };
}
