import type { Invocation } from './command.ts';

const quietMs = 3_000;

/** Asks a run for what it does after its step, and says so where the step is a long one. */
export async function askRun(
  { core, note, positionals }: Invocation,
  command: 'pause' | 'stop' | 'checkpoint',
) {
  const client = await core();
  const timer = setTimeout(() => {
    note('The run does it after its step; this waits for that. Ctrl-C ends the waiting alone.');
  }, quietMs);
  try {
    return await client.call('runs:command', { id: positionals[0] ?? '', command });
  } finally {
    clearTimeout(timer);
  }
}
