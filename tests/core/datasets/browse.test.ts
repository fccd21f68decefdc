import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { whyNames } from '../../../main/contract/datasets.ts';
import { datasetHandlers } from '../../../main/core/datasets/handlers.ts';
import { call, chatMl, makeModel, openDatasets, writeFiles } from './fixtures.ts';

const chat = (...turns: [string, string][]) =>
  JSON.stringify({ messages: turns.map(([role, content]) => ({ role, content })) });

async function openChats(...rows: string[]) {
  const handlers = datasetHandlers((await openDatasets()).datasets);
  const folder = writeFiles({ 'rows.jsonl': rows.map((row) => `${row}\n`).join('') });
  const model = makeModel({ template: chatMl });
  const args = {
    paths: [join(folder, 'rows.jsonl')],
    model,
    template: {},
    supervise: { turns: 'assistant' as const, reasoning: true },
    columns: {},
    roles: {},
    strict: false,
  };
  const { dataset } = await handlers['datasets:import'](args, call());
  return { handlers, id: dataset.id, folder };
}

const greeting = chat(['system', 'Be brief.'], ['user', 'héllo 🚲'], ['assistant', 'Hello World']);
const farewell = chat(['user', 'bye'], ['assistant', 'So long.']);

describe('one example', () => {
  it('gives each token its bytes, and the bytes joined are the text', async () => {
    const { handlers, id } = await openChats(greeting);
    const example = await handlers['datasets:example']({ id, index: 0 }, call());
    const text = Buffer.from(example.bytes).toString();
    expect(text).toContain('<|im_start|>user\nhéllo 🚲<|im_end|>');
    expect(example.byteOffsets.at(-1)).toBe(example.bytes.length);
    const specials = Array.from(example.ids).filter((_, t) => example.special[t] === 1);
    expect(specials).toHaveLength(6);
  });

  it('tells of each token which message it is of and why it is learned', async () => {
    const { handlers, id } = await openChats(farewell, greeting);
    const { turns, why } = await handlers['datasets:origins']({ id, index: 1 }, call());
    const { ids, supervised, bytes, byteOffsets } = await handlers['datasets:example'](
      { id, index: 1 },
      call(),
    );
    expect(turns.map(({ role, message }) => [role, message])).toEqual([
      ['system', 0],
      ['user', 1],
      ['assistant', 2],
    ]);
    expect(turns.at(-1)?.to).toBe(ids.length);
    const textOf = (name: string) => {
      const tokens = Array.from(why.keys()).filter((t) => whyNames[why[t] ?? 0] === name);
      return tokens.map((t) =>
        Buffer.from(bytes.subarray(byteOffsets[t], byteOffsets[t + 1])).toString('latin1'),
      );
    };
    expect(Buffer.from(textOf('user').join(''), 'latin1').toString()).toBe('héllo 🚲');
    expect(textOf('assistant').join('')).toBe('Hello World');
    const learned = Array.from(why).filter((_, t) => supervised[t] === 1);
    expect(new Set(learned.map((code) => whyNames[code]))).toEqual(new Set(['assistant', 'endOfTurn']));
  });

  it('shows the row as its file has it, and says when the file has changed', async () => {
    const { handlers, id, folder } = await openChats(greeting);
    expect(await handlers['datasets:source']({ id, index: 0 }, call())).toEqual({ json: greeting });
    writeFileSync(join(folder, 'rows.jsonl'), `${farewell}\n`);
    await expect(handlers['datasets:origins']({ id, index: 0 }, call())).rejects.toMatchObject({
      code: 'sourceChanged',
    });
  });

  it('refuses one that is not there', async () => {
    const { handlers, id } = await openChats(greeting);
    await expect(handlers['datasets:example']({ id, index: 9 }, call())).rejects.toMatchObject({
      code: 'noExample',
    });
  });
});

describe('many examples', () => {
  it('previews what is read and what is learned', async () => {
    const { handlers, id } = await openChats(greeting, farewell);
    const { rows } = await handlers['datasets:previews']({ id, indices: [1] }, call());
    expect(rows).toMatchObject([{ index: 1, line: 2, kind: 'chat', prompt: 'bye', answer: 'So long.' }]);
  });

  it('previews several answers as lines of their own', async () => {
    const turns = ['hi', 'Hello.', 'and you?', 'I am well.'].map((content, i) => ({
      role: i % 2 === 0 ? 'user' : 'assistant',
      content,
    }));
    const { handlers, id } = await openChats(JSON.stringify({ messages: turns }));
    const { rows } = await handlers['datasets:previews']({ id, indices: [0] }, call());
    expect(rows[0]?.answer).toBe('Hello.\nI am well.');
  });

  it('counts tokens, and what a budget would cut, as the tokens are', async () => {
    const { handlers, id } = await openChats(greeting, farewell);
    const { lengths, supervised } = await handlers['datasets:lengths']({ id }, call());
    const examples = [
      await handlers['datasets:example']({ id, index: 0 }, call()),
      await handlers['datasets:example']({ id, index: 1 }, call()),
    ] as const;
    expect(Array.from(lengths)).toEqual(examples.map(({ ids }) => ids.length));
    const sum = (marks: Uint8Array) => marks.reduce((total, mark) => total + mark, 0);
    expect(Array.from(supervised)).toEqual(examples.map((example) => sum(example.supervised)));
    const budget = (lengths[1] ?? 0) - 4;
    const cut = await handlers['datasets:cut']({ id, budget }, call());
    const [first, second] = examples;
    const tails = [first.supervised.subarray(budget), second.supervised.subarray(budget)] as const;
    expect(cut).toEqual({
      examples: 2,
      tokens: tails[0].length + 4,
      supervisedTokens: sum(tails[0]) + sum(tails[1]),
    });
  });

  it('finds a text in any case, never across two examples', async () => {
    const { handlers, id } = await openChats(greeting, farewell, greeting);
    const find = async (text: string) => {
      const found: number[] = [];
      await handlers['datasets:search']({ id, text }, ({ matches }) => found.push(...matches), call().signal);
      return found;
    };
    expect(await find('hello world')).toEqual([0, 2]);
    expect(await find('🚲')).toEqual([0, 2]);
    expect(await find('LONG.')).toEqual([1]);
    expect(await find('<|im_end|>\n<|im_start|>user\nbye')).toEqual([]);
    expect(await find('so long.<|IM_END|>')).toEqual([1]);
    expect(await find('nowhere')).toEqual([]);
    expect(await find('🚲 À BIENTÔT')).toEqual(await find('🚲 à bientôt'));
  });
});

describe('a sample of rows', () => {
  it('tells columns, roles and why nothing is recognised; a mapping mends it', async () => {
    const handlers = datasetHandlers((await openDatasets()).datasets);
    const rows = ['{"frage":"Wo?","antwort":"Dort.","id":1}', '{"frage":"Wann?","id":2}', 'broken'];
    const folder = writeFiles({ 'rows.jsonl': `${rows.join('\n')}\n` });
    const source = { paths: [join(folder, 'rows.jsonl')] };
    const plain = await handlers['datasets:sample']({ source, columns: {}, roles: {}, count: 10 }, call());
    expect(plain.rows).toBe(3);
    expect(plain.columns.map(({ name, filled }) => [name, filled])).toEqual([
      ['frage', 2],
      ['antwort', 1],
      ['id', 2],
    ]);
    expect(plain.formats).toEqual([]);
    expect(plain.skipped.map(({ count }) => count).reduce((sum, each) => sum + each)).toBe(3);
    const columns = { prompt: 'frage', completion: 'antwort' };
    const mapped = await handlers['datasets:sample']({ source, columns, roles: {}, count: 10 }, call());
    expect(mapped.formats).toMatchObject([{ format: 'completion', count: 1 }]);
    expect(mapped.preview).toEqual([
      { text: 'Wo?', isSupervised: false },
      { text: 'Dort.', isSupervised: true },
    ]);
  });

  it('shows an imported chat with its roles and its answer marked', async () => {
    const { handlers, id } = await openChats(greeting, farewell);
    const source = { dataset: id };
    const sample = await handlers['datasets:sample']({ source, columns: {}, roles: {}, count: 1 }, call());
    expect(sample).toMatchObject({ rows: 1, skipped: [], formats: [{ format: 'messages', confidence: 1 }] });
    expect(sample.roles.map(({ role }) => role)).toEqual(['system', 'user', 'assistant']);
    const learned = sample.preview?.filter(({ isSupervised }) => isSupervised).map(({ text }) => text);
    expect(learned).toEqual(['Hello World<|im_end|>']);
  });
});

describe('the first rows of a file', () => {
  it('are there before the rest is read, problems among them, and nothing is imported for it', async () => {
    const handlers = datasetHandlers((await openDatasets()).datasets);
    const chat = (i: number) =>
      `{"messages":[{"role":"user","content":"q ${String(i)}"},{"role":"assistant","content":"a"}]}`;
    const rows = Array.from({ length: 60_000 }, (_, i) => (i === 2 ? '{"text":' : chat(i)));
    const folder = writeFiles({
      'rows.jsonl': `${rows.join('\n')}\n`,
      'few.csv': 'prompt,completion\nx,y\n',
    });
    const look = (name: string) =>
      handlers['datasets:preview'](
        { paths: [join(folder, name)], columns: {}, roles: {}, count: 500 },
        call(),
      );
    const many = await look('rows.jsonl');
    expect(many.isAll).toBe(false);
    expect(many.rows).toHaveLength(500);
    expect(many.rows[0]).toMatchObject({ line: 1, format: 'messages', prompt: 'q 0', answer: 'a' });
    expect(many.rows[2]).toMatchObject({ line: 3, problem: expect.stringContaining('no JSON') as string });
    expect(await look('few.csv')).toMatchObject({
      isAll: true,
      rows: [{ line: 2, format: 'completion', prompt: 'x', answer: 'y' }],
    });
    await expect(look('none.jsonl')).rejects.toThrow('none.jsonl');
  });
});
