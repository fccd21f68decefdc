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
  for (const data of kept(checkpoint, 'recentSteps', 'step')) {
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
  return kept(checkpoint, 'recentEvaluations', 'eval').filter(
    (event) => !known.some(({ step, phase }) => step === event.step && phase === event.phase),
  );
}

export type Answered = Extract<EngineEvent, { event: 'sample' }>;

/** Answers to the recipe's prompts up to a checkpoint that the history does not hold. */
export function lostSamples(
  checkpoint: string,
  known: readonly { step: number; position: number }[],
): Answered[] {
  return kept(checkpoint, 'recentSamples', 'sample').filter(
    (event) => !known.some(({ step, position }) => step === event.step && position === event.index),
  );
}

/** Empty in checkpoints of older versions, and where the file is damaged: the engine says so when it reads it. */
function kept<Name extends EngineEvent['event']>(
  checkpoint: string,
  what: 'recentSteps' | 'recentEvaluations' | 'recentSamples',
  name: Name,
): Extract<EngineEvent, { event: Name }>[] {
  const isWanted = (event: EngineEvent): event is Extract<EngineEvent, { event: Name }> =>
    event.event === name;
  try {
    const state = JSON.parse(readFileSync(join(checkpoint, 'state.json'), 'utf8')) as Record<string, unknown>;
    const events = state[what];
    if (!Array.isArray(events)) return [];
    return events.flatMap((raw) => engineEvent.safeParse(raw).data ?? []).filter(isWanted);
  } catch {
    return [];
  }
}
