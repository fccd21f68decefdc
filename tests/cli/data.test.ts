import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { chatMl, makeModel, tempFolder, writeFiles } from '../core/datasets/fixtures.ts';

type Json = Record<string, unknown>;

function tessera(home: string, ...args: string[]): Promise<{ exitCode: number; json: Json; stdout: string }> {
  return new Promise((resolve) => {
    const command = ['main/cli/main.ts', ...args, '--json', '--home', home];
    const child = execFile(process.execPath, command, (_error, stdout) => {
      resolve({ exitCode: child.exitCode ?? -1, json: JSON.parse(stdout) as Json, stdout });
    });
  });
}

it(
  'a file is imported, listed, shown, read and removed from the command line',
  { timeout: 240_000 },
  async () => {
    const home = tempFolder();
    const model = makeModel({ template: chatMl });
    const question = { role: 'user', content: 'Grüße?' };
    const rows = [
      JSON.stringify({ messages: [question, { role: 'assistant', content: 'Grüße 😀' }] }),
      '{"messages":[{"role":"user","content":"alone"}]}',
      'no json',
    ];
    const file = join(writeFiles({ 'chats.jsonl': rows.join('\n') }), 'chats.jsonl');

    const imported = await tessera(home, 'data', 'import', file, '--model', model, '--name', 'My chats');
    expect(imported.exitCode).toBe(0);
    const dataset = imported.json['dataset'] as Json & { id: string };
    expect(dataset).toMatchObject({ name: 'My chats', format: 'messages', rows: 1 });
    expect(imported.json['skipped']).toEqual([
      { file, line: 2, reason: expect.stringContaining('no assistant') as string },
      { file, line: 3, reason: expect.stringContaining('no JSON') as string },
    ]);
    expect(imported.stdout.trim().split('\n')).toHaveLength(1);

    const { json: listed } = await tessera(home, 'data', 'list');
    expect(listed).toEqual({ datasets: [dataset] });

    const { json: shown } = await tessera(home, 'data', 'show', dataset.id);
    expect(shown).toMatchObject({
      lengths: { min: dataset['tokens'], max: dataset['tokens'] },
      model: expect.any(String) as string,
    });

    const { json: read } = await tessera(home, 'data', 'rows', dataset.id, '--from', '0', '--count', '5');
    const [row] = read['rows'] as { text: string; tokens: { text: string; supervised: boolean }[] }[];
    expect(row?.text).toBe('<|im_start|>user\nGrüße?<|im_end|>\n<|im_start|>assistant\nGrüße 😀<|im_end|>\n');
    expect(row?.tokens.map(({ text }) => text).join('')).toBe(row?.text);
    const learned = row?.tokens.filter(({ supervised }) => supervised).map(({ text }) => text);
    expect(learned?.join('')).toBe('Grüße 😀<|im_end|>');
    expect(learned).toHaveLength(dataset['supervisedTokens'] as number);

    const { json: removed } = await tessera(home, 'data', 'remove', dataset.id);
    expect(removed).toMatchObject({ datasets: [], removed: { id: dataset.id } });
    expect(readFileSync(file, 'utf8')).toBe(rows.join('\n'));

    const missing = await tessera(home, 'data', 'show', dataset.id);
    expect(missing).toMatchObject({
      exitCode: 1,
      json: { error: { code: 'noDataset', hint: expect.any(String) as string } },
    });
    const nothing = join(writeFiles({ 'bad.jsonl': rows.slice(1).join('\n') }), 'bad.jsonl');
    expect(await tessera(home, 'data', 'import', nothing, '--model', model)).toMatchObject({
      exitCode: 1,
      json: { error: { code: 'noUsableRows' }, skipped: [{ line: 1 }, { line: 2 }] },
    });
    const wrongCall = await tessera(home, 'data', 'import', file, '--supervise', 'nobody');
    expect(wrongCall).toMatchObject({ exitCode: 2, json: { error: { code: 'usage' } } });
  },
);
