import { dirname, resolve } from 'node:path';
import { makeOutputFolder } from '../../core/makeFolder.ts';
import { writeWhole } from '../../core/writeWhole.ts';
import { defineCommand, usage } from '../command.ts';

export const command = defineCommand({
  summary: 'Write a report of one or more runs, one page that stands alone',
  usage: 'RUN… --out FILE',
  options: { out: { type: 'string', value: 'FILE', help: 'the HTML file to write' } },
  numPositionals: [1, Infinity],
  waiting: 'Writing the report',
  run: async ({ positionals, options, core }) => {
    if (options.out === undefined) throw usage('--out FILE is missing');
    const { html } = await (await core()).call('runs:report', { ids: positionals });
    const file = resolve(options.out);
    makeOutputFolder(dirname(file));
    await writeWhole(file, html);
    return { ok: true, file, sizeBytes: Buffer.byteLength(html) };
  },
  text: ({ file }) => file,
});
