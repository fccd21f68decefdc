import { defineCommand } from '../command.ts';

export const command = defineCommand({
  summary: 'Say which core works in the home, and at what',
  usage: '',
  options: {},
  numPositionals: [0, 0],
  run: async ({ core }) => (await core()).call('system:info', {}),
  text: (info) =>
    `core ${info.version}, pid ${String(info.pid)}, home ${info.home}\nwork: ${info.work.join(', ') || 'none'}`,
});
