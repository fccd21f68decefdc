import type { CoreClient } from '../contract/index.ts';

export interface NamedRun {
  id: string;
  name: string;
}

/** Which runs `latest`, names and beginnings of ids mean now: after a change they may mean others. */
export async function namedRuns(client: CoreClient, given: string[]): Promise<NamedRun[]> {
  const shown = await Promise.all(given.map((id) => client.call('runs:show', { id })));
  return shown.map(({ run: { id, name } }) => ({ id, name }));
}

/** `night shift (261130-1), padded (261130-2)` */
export const runNames = (runs: NamedRun[]) => runs.map(({ id, name }) => `${name} (${id})`).join(', ');
