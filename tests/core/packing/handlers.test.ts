import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { attachCore } from '../../../main/core/attach.ts';
import type { CoreClient } from '../../../main/contract/index.ts';

let folder: string;
let core: CoreClient;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'packing-'));
  core = await attachCore(join(folder, 'home'));
});
afterEach(async () => {
  core.close();
  await core.closed;
  rmSync(folder, { recursive: true, force: true });
});

test('a dataset is packed by its id: chats truncated, texts split, what loses its targets dropped', async () => {
  const path = join(folder, 'mixed.jsonl');
  const rows = [
    {
      messages: [
        { role: 'user', content: 'Is it level?' },
        { role: 'assistant', content: 'Nearly.' },
      ],
    },
    {
      messages: [
        { role: 'user', content: 'word '.repeat(200) },
        { role: 'assistant', content: 'Too late.' },
      ],
    },
    { text: 'A long text. '.repeat(40) },
  ];
  writeFileSync(path, rows.map((row) => JSON.stringify(row)).join('\n'));
  const { dataset } = await core.call('datasets:import', { paths: [path] });
  const options = { budget: 64, strategy: 'in-order' } as const;
  const plan = await core.call('packing:plan', {
    source: { dataset: dataset.id },
    options,
    withLayout: true,
  });
  expect(plan.summary).toMatchObject({ examples: 3, dropped: { overlong: 0, nothingToLearn: 1 } });
  expect(new Set(plan.layout?.example)).toEqual(new Set([0, 2]));
  // What it costs is asked of the dataset's own model, wherever that lies.
  const { cost, why } = await core.call('packing:cost', { dataset: dataset.id, budget: 64 });
  expect([cost, why]).toEqual([undefined, expect.stringContaining('No step was timed yet')]);
  const placed = plan.layout?.length.reduce((a, b) => a + b);
  expect(placed).toBe((plan.lengths?.[0] ?? 0) + (plan.lengths?.[2] ?? 0));
});

test('a dataset of which nothing fits that could be learned is refused by name, with the way out', async () => {
  const path = join(folder, 'questions.jsonl');
  const messages = [
    { role: 'user', content: 'Is it level? '.repeat(20) },
    { role: 'assistant', content: 'Yes.' },
  ];
  writeFileSync(path, JSON.stringify({ messages }));
  const { dataset } = await core.call('datasets:import', { paths: [path] });
  await expect(
    core.call('packing:plan', { source: { dataset: dataset.id }, options: { budget: 16 } }),
  ).rejects.toMatchObject({
    code: 'nothingToLearn',
    message: expect.stringContaining('1 has nothing to learn within it') as string,
    hint: expect.stringContaining('budget') as string,
  });
  await expect(
    core.call('packing:plan', { source: { lengths: new Int32Array(0) }, options: { budget: 64 } }),
  ).rejects.toMatchObject({
    code: 'noExamples',
    hint: expect.stringContaining('its problems name the rows that were left out') as string,
  });
});

test('lengths are packed as they are, and an error keeps its code and hint', async () => {
  const lengths = Int32Array.of(3, 4, 5);
  const { summary } = await core.call('packing:plan', { source: { lengths }, options: { budget: 8 } });
  expect(summary).toMatchObject({ strategy: 'best-fit', bins: 2, tokens: 12 });
  await expect(
    core.call('packing:plan', { source: { lengths }, options: { budget: 1 } }),
  ).rejects.toMatchObject({
    code: 'badBudget',
    hint: expect.stringContaining('from 2') as string,
  });
});

test('the picture gets every stretch of every mask, and the file of each example', async () => {
  const chats = join(folder, 'chats.jsonl');
  const turns = (...words: string[]) =>
    words.map((content, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content }));
  const rows = [
    turns('Is it level?', 'Nearly.'),
    turns('Which saw?', 'The fine one.', 'Why?', 'It tears less.'),
  ];
  writeFileSync(chats, rows.map((messages) => JSON.stringify({ messages })).join('\n'));
  const texts = join(folder, 'texts.jsonl');
  writeFileSync(texts, JSON.stringify({ text: 'Only a text.' }));
  const { dataset } = await core.call('datasets:import', { paths: [texts, chats] });
  const found = await core.call('packing:examples', { dataset: dataset.id });

  const { lengths } = await core.call('datasets:lengths', { id: dataset.id });
  for (const [index, length] of lengths.entries()) {
    const { supervised } = await core.call('datasets:example', { id: dataset.id, index });
    const own = found.flips.subarray(found.flipOffsets[index], found.flipOffsets[index + 1]);
    const mask = Uint8Array.from({ length }, (_, t) => own.filter((flip) => flip <= t).length % 2);
    expect(mask).toEqual(supervised);
  }
  expect(found.sources.map(({ path, examples }) => [path, examples])).toEqual([
    [chats, 2],
    [texts, 1],
  ]);
  expect([...found.source].sort()).toEqual([0, 0, 1]);
});
