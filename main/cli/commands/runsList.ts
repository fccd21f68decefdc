import { defineCommand } from '../command.ts';
import { count } from '../progressBar.ts';
import { textTable } from '../runText.ts';
import { program } from '../help.ts';

export const command = defineCommand({
  summary: 'List the runs, newest first',
  usage: '[--search Q]',
  options: {
    search: { type: 'string', value: 'Q', help: "words, or recipe fields: 'lr<1e-4 strategy:bfd'" },
    deleted: { type: 'boolean', help: 'those that were deleted and are not gone yet' },
    archived: { type: 'boolean', help: 'archived ones too' },
  },
  numPositionals: [0, 0],
  run: async ({ options: { search, archived, deleted }, core }) => {
    const shelf = { archived, deleted };
    const client = await core();
    return {
      ...(await client.call('runs:list', { ...shelf, ...(search !== undefined && { search }) })),
      ...(search !== undefined && { search }),
      deleted,
    };
  },
  text: ({ runs, search, deleted }) => {
    if (runs.length === 0) {
      if (search !== undefined) return `No run matches ${search}`;
      return deleted ? 'Nothing was deleted.' : `No runs yet. Start one with: ${program} train RECIPE`;
    }
    const rows = runs.map((run) => [
      run.id,
      run.name,
      run.status,
      `${count(run.steps)}/${count(run.plannedSteps)}`,
      run.firstLoss?.toFixed(3) ?? '',
      run.lastLoss?.toFixed(3) ?? '',
      run.tokensPerSecond === undefined ? '' : count(run.tokensPerSecond),
      new Date(run.createdAtMs).toISOString().slice(0, 16).replace('T', ' '),
    ]);
    return textTable(
      ['id', 'name', 'status', 'steps', 'first loss', 'last loss', 'tokens/s', 'started (UTC)'],
      rows,
      [3, 4, 5, 6],
    );
  },
});
