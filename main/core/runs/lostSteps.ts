import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StepRow } from '../../../db/queries/runs.ts';
import { addTotals } from '../../../db/queries/series.ts';
import { engineEvent, type EngineEvent } from '../engine/protocol.ts';

/**
 * Steps up to a checkpoint that the history does not hold: their events were on the way when the core died. The engine
 * keeps its newest ones in the checkpoint.
 * @param newest the last step of the history; absent where it holds none
 * @returns in order, going on from `newest` without a hole; none where the checkpoint does not reach back so far
 */
export function lostSteps(checkpoint: string, newest: StepRow | undefined): StepRow[] {
  const rows: StepRow[] = [];
  for (const raw of kept(checkpoint, 'recentSteps')) {
    const parsed = engineEvent.safeParse(raw);
    if (!parsed.success || parsed.data.event !== 'step') continue;
    const { data } = parsed;
    const before = rows.at(-1) ?? newest;
    if (data.step !== (before?.step ?? 0) + 1) continue;
    rows.push(
      addTotals(before, {
        ...{ step: data.step, atMs: Math.round(data.atMs), loss: data.loss, gradNorm: data.gradNorm },
        ...{ learningRate: data.learningRate, supervisedTokens: data.supervisedTokens },
        ...{ realTokens: data.realTokens, positions: data.positions, flops: data.flops },
        milliseconds: data.milliseconds,
        elapsedMs: (before?.elapsedMs ?? 0) + data.milliseconds,
      }),
    );
  }
  return rows;
}

export type Evaluated = Extract<EngineEvent, { event: 'eval' }>;

/** Evaluations up to a checkpoint that the history does not hold, for the same reason. */
export function lostEvaluations(
  checkpoint: string,
  known: readonly { step: number; phase: string }[],
): Evaluated[] {
  return kept(checkpoint, 'recentEvaluations').flatMap((raw) => {
    const parsed = engineEvent.safeParse(raw);
    if (!parsed.success || parsed.data.event !== 'eval') return [];
    const { data } = parsed;
    return known.some(({ step, phase }) => step === data.step && phase === data.phase) ? [] : [data];
  });
}

export type Answered = Extract<EngineEvent, { event: 'sample' }>;

/** Answers to the recipe's prompts up to a checkpoint that the history does not hold. */
export function lostSamples(
  checkpoint: string,
  known: readonly { step: number; position: number }[],
): Answered[] {
  return kept(checkpoint, 'recentSamples').flatMap((raw) => {
    const parsed = engineEvent.safeParse(raw);
    if (!parsed.success || parsed.data.event !== 'sample') return [];
    const { data } = parsed;
    return known.some(({ step, position }) => step === data.step && position === data.index) ? [] : [data];
  });
}

/** Empty in checkpoints of older versions, and where the file is damaged: the engine says so when it reads it. */
function kept(checkpoint: string, what: 'recentSteps' | 'recentEvaluations' | 'recentSamples'): unknown[] {
  try {
    const state = JSON.parse(readFileSync(join(checkpoint, 'state.json'), 'utf8')) as Record<string, unknown>;
    const events = state[what];
    return Array.isArray(events) ? events : [];
  } catch {
    return [];
  }
}
