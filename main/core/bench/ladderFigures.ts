import type { Rung } from '../../contract/bench.ts';
import type { StepMeasurement } from '../runs/measureSteps.ts';

/** What was asked of a rung, and each round's answer. */
export interface MeasuredRung extends Pick<Rung, 'kernels' | 'strategy' | 'fill'> {
  rounds: StepMeasurement[];
}

/** Figures of each rung, in the order of the ladder. Every rung must have the same number of rounds, one at least. */
export function ladderFigures(measured: readonly MeasuredRung[]): { rungs: Rung[]; spread: number } {
  const times = measured.map(({ rounds }) => rounds.map(milliseconds));
  const rungs = measured.map(({ kernels, strategy, fill, rounds }, i): Rung => {
    const steps = rounds[0]?.steps ?? [];
    const own = times[i] ?? [];
    const tokens = sum(steps.map(({ realTokens }) => realTokens));
    const typical = median(own);
    // Rounds are taken in turns: what slowed one rung down slowed its neighbours down too.
    const against = (other: number) => median(own.map((ms, round) => (times[other]?.[round] ?? ms) / ms));
    return {
      ...{ kernels, strategy, fill, tokens },
      ...describeKernels(rounds[0]?.kernels ?? []),
      steps: steps.length,
      positions: sum(steps.map(({ positions }) => positions)),
      stepMilliseconds: typical / steps.length,
      tokensPerSecond: (tokens / typical) * 1000,
      factor: i === 0 ? 1 : against(i - 1),
      factorInAll: against(0),
    };
  });
  const spread = Math.max(...times.map((own) => (Math.max(...own) - Math.min(...own)) / median(own)));
  return { rungs, spread };
}

function describeKernels(kernels: StepMeasurement['kernels']): Pick<Rung, 'deltaRule' | 'builtOn'> {
  const rule = kernels.find(({ operation }) => operation === 'gated_delta_rule');
  const text = (value: unknown) => (typeof value === 'string' ? value : '');
  return { deltaRule: text(rule?.forward), builtOn: text(rule?.reason) };
}

function milliseconds({ steps }: StepMeasurement): number {
  return sum(steps.map((step) => step.milliseconds));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const [low = 0, high = 0] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return (low + high) / 2;
}
