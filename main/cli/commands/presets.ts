import { presets } from '../../contract/presets.ts';
import { defineCommand } from '../command.ts';
import { program } from '../help.ts';

export const command = defineCommand({
  summary: 'List the recipes that come with the program',
  usage: '',
  options: {},
  numPositionals: [0, 0],
  run: () => Promise.resolve({ presets }),
  text: ({ presets: all }) =>
    all
      .map(
        ({ name, title, summary }) =>
          `${name}: ${title}\n  ${summary}\n  ${program} train --preset ${name} --set model=DIR`,
      )
      .join('\n'),
});
