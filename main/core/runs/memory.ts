import { z } from 'zod';
import { runEngine } from '../engine/engineProcess.ts';
import { engineArguments, type RunInputs } from './engineArguments.ts';

/** Bytes by part and their `total`, from the engine's own plan of its memory. Nothing is allocated or trained. */
export async function forecastMemory(inputs: RunInputs): Promise<Record<string, number>> {
  const answer = await runEngine([...engineArguments(inputs), '--forecast']);
  return z.looseObject({ memory: z.record(z.string(), z.number()) }).parse(answer).memory;
}
