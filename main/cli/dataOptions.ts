import type { Options } from './command.ts';

/** What is learned, and what the template is told; the same words for every command that renders. */
export const superviseOptions = {
  supervise: { type: 'string', value: 'TURNS', help: 'Learn assistant (all its turns), last, or all' },
  'no-reasoning': { type: 'boolean', help: 'Do not learn the reasoning' },
  argument: {
    type: 'string',
    multiple: true,
    value: 'K=V',
    help: 'A variable of the template, e.g. enable_thinking=false',
  },
} as const satisfies Options;
