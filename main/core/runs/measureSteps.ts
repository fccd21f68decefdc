import { z } from 'zod';
import { askEngine } from '../engine/askEngine.ts';
import type { RunEngineOptions } from '../engine/engineProcess.ts';
import { engineArguments, type RunInputs } from './engineArguments.ts';

const answer = z.looseObject({
  device: z.string(),
  /** Every micro-batch is computed as long as the longest. */
  fixedShapes: z.boolean(),
  recompute: z.string(),
  kernels: z.array(z.record(z.string(), z.unknown())),
  steps: z.array(
    z.looseObject({
      realTokens: z.int(),
      supervisedTokens: z.int(),
      positions: z.int(),
      milliseconds: z.number(),
    }),
  ),
});
export type StepMeasurement = z.infer<typeof answer>;

/**
 * Lets an engine take the steps of a run's folder, round after round, and says what each took; nothing is learnt or
 * kept. At most `passes` rounds, and about `seconds`.
 */
export async function measureSteps(
  inputs: RunInputs,
  { seconds, passes }: { seconds: number; passes: number },
  options: Pick<RunEngineOptions, 'signal' | 'onProgress'>,
): Promise<StepMeasurement> {
  const limits = ['--measure', String(seconds), '--passes', String(passes)];
  return askEngine(answer, [...engineArguments(inputs), ...limits], options);
}
