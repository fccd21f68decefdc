import type { z } from 'zod';
import { runEngine, type RunEngineOptions } from './engineProcess.ts';
import { shapeMismatch } from './mismatch.ts';

/**
 * What the engine answers to a command, in the shape that is expected of it.
 * @throws {TesseraError} what the engine says, or `engineMismatch` where it answers in another shape
 */
export async function askEngine<T>(
  shape: z.ZodType<T>,
  args: string[],
  options: RunEngineOptions = {},
): Promise<T> {
  const parsed = shape.safeParse(await runEngine(args, options));
  if (parsed.success) return parsed.data;
  throw shapeMismatch(`answer to '${args[0] ?? ''}'`, parsed.error, await versionOfEngine());
}

async function versionOfEngine(): Promise<string | undefined> {
  try {
    const { version } = (await runEngine(['hello'])) as { version?: unknown };
    return typeof version === 'string' ? version : undefined;
  } catch {
    return undefined;
  }
}
