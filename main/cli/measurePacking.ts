import { TesseraError } from '../contract/errors.ts';
import type { Recipe } from '../contract/recipe.ts';
import type { Invocation } from './command.ts';
import { followRun } from './followRun.ts';
import { count } from './progressBar.ts';
import { textTable } from './runText.ts';

export interface PackingMeasurement {
  /** Which step of the comparison this is: the strategy's name. */
  stage: string;
  strategy: string;
  kernels: string;
  realTokensPerSecond: number;
  steps: number;
  /** Tokens ÷ (bins × budget). */
  fill: number;
  tokens: number;
  /** What was really computed, padding included. */
  positions: number;
  seconds: number;
}

/**
 * Trains on the same examples once for each strategy, one after the other on the same engine. Padding is computed,
 * not estimated: a padded bin's positions go through every kernel.
 */
export async function measurePacking(
  invocation: Pick<Invocation, 'core' | 'progress' | 'note' | 'interrupted'>,
  recipe: Recipe,
  strategies: readonly Recipe['packing']['strategy'][],
  maxExamples: number,
  epochs = 1,
): Promise<PackingMeasurement[]> {
  const core = await invocation.core();
  const measured: PackingMeasurement[] = [];
  for (const strategy of strategies) {
    const { epochs: _epochs, evalShare: _share, evalDataset: _set, ...rest } = recipe;
    const one = {
      ...rest,
      epochs,
      name: `${recipe.name}: ${strategy}`,
      packing: { ...recipe.packing, strategy },
    };
    const { run } = await core.call('runs:create', { recipe: one, kind: 'benchmark', maxExamples });
    const quiet = { ...invocation, note: () => undefined };
    const ended = await followRun(core, run.id, quiet);
    if (ended.status !== 'completed') {
      throw new TesseraError('benchFailed', `${strategy}: ${ended.reason ?? ended.status}`);
    }
    const { run: detail } = await core.call('runs:show', { id: run.id });
    const { plan, activeMs, tokensPerSecond = 0, kernels } = detail;
    measured.push({
      stage: strategy,
      strategy,
      kernels: [...new Set(kernels.map(({ tier }) => String(tier)))].join('+') || 'reference',
      realTokensPerSecond: tokensPerSecond,
      steps: ended.steps,
      fill: plan.fill,
      tokens: plan.tokens,
      positions: plan.positions,
      seconds: activeMs / 1000,
    });
  }
  return measured;
}

export function packingTable(rows: PackingMeasurement[]): string {
  const slowest = Math.min(...rows.map(({ realTokensPerSecond }) => realTokensPerSecond));
  return textTable(
    ['strategy', 'steps', 'tokens', 'computed', 'padding', 'seconds', 'tokens/s', 'speed'],
    rows.map(({ strategy, steps, tokens, positions, seconds, realTokensPerSecond }) => [
      strategy,
      count(steps),
      count(tokens),
      count(positions),
      `${((1 - tokens / positions) * 100).toFixed(1)} %`,
      seconds.toFixed(1),
      count(realTokensPerSecond),
      `${(realTokensPerSecond / slowest).toFixed(2)}×`,
    ]),
    [1, 2, 3, 4, 5, 6, 7],
  );
}
