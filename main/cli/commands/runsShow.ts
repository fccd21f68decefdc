import { stringify } from 'yaml';
import { defineCommand } from '../command.ts';
import { forecastText, runText } from '../runText.ts';

export const command = defineCommand({
  summary: 'Show a run: recipe, results, events',
  usage: 'RUN',
  options: {},
  numPositionals: [1, 1],
  run: async ({ positionals: [id = ''], core }) => (await core()).call('runs:show', { id }),
  text: ({ run }) =>
    [
      runText({ run }),
      ...(run.forecast === undefined ? [] : [`time           ${forecastText(run.forecast)}`]),
      `device         ${run.device ?? '–'}`,
      `folder         ${run.folder}`,
      ...(run.tags.length > 0 ? [`tags           ${run.tags.join(', ')}`] : []),
      ...(run.notes === '' ? [] : [`notes          ${run.notes}`]),
      '',
      stringify(run.recipe).trimEnd(),
      '',
      ...run.events.map(
        ({ atMs, kind, step }) =>
          `${new Date(atMs).toISOString().slice(11, 19)}  ${kind}${step === undefined ? '' : ` (step ${step})`}`,
      ),
    ].join('\n'),
});
