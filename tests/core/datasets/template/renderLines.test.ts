import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readLines } from '../../../../main/core/datasets/readers/lines.ts';
import { maskLines, renderLines } from '../../../../main/core/datasets/template/renderLines.ts';
import { DEFAULT_SUPERVISION } from '../../../../main/core/datasets/template/supervision.ts';
import { compileTemplate } from '../../../../main/core/datasets/template/template.ts';
import { readTokenizerFile } from '../../../../main/core/datasets/tokenise/tokenizerFile.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const MODELS = join(ROOT, 'assets/models');
const template = compileTemplate(
  readFileSync(join(ROOT, 'tests/fixtures/templates/qwen3_5_think.jinja'), 'utf8'),
);
const GOOD =
  '{"messages":[{"role":"user","content":"Hi 👋"},{"role":"assistant","content":"Hello 👋 there"}]}';

async function* bytes(...lines: string[]): AsyncGenerator<Buffer> {
  await Promise.resolve();
  yield Buffer.from(`\ufeff${lines.join('\r\n')}\n`);
}

async function collect<T>(rows: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const row of rows) all.push(row);
  return all;
}

describe('data render', () => {
  it('gives one object a row, in order, failures among them; blank lines are no rows', async () => {
    const lines = readLines(bytes(GOOD, '', '{"messages":', '{"messages":[]}', '[1]', '{}', GOOD), 1e6);
    const rows = await collect(
      renderLines(lines, { template, supervision: undefined, templateArguments: {} }),
    );
    const text =
      '<|im_start|>user\nHi 👋<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nHello 👋 there<|im_end|>\n';
    expect(rows).toEqual([
      { text },
      { error: 'line 3 is no JSON: Expecting value: line 1 column 13 (char 12)' },
      { error: 'ValueError: transformers refuses an empty conversation before it renders' },
      { error: 'TypeError: a row must be an object with messages, not list' },
      { error: "KeyError: 'messages'" },
      { text },
    ]);
  });

  it('takes template arguments of the row and of the call', async () => {
    const row = (text: string): string => GOOD.replace('{"messages"', `{${text}"messages"`);
    const source = compileTemplate('{{ x }}{{ add_generation_prompt }}{{ tools }}{{ bos_token is defined }}');
    const lines = readLines(bytes(row('"arguments":{"x":1.0},'), row('"bos_token":"<s>",')), 1e6);
    const options = {
      template: source,
      supervision: undefined,
      templateArguments: { add_generation_prompt: true },
    };
    expect(await collect(renderLines(lines, options))).toEqual([
      { text: '1.0TrueNoneFalse' },
      { text: 'TrueNoneTrue' },
    ]);
  });
});

describe('data mask', () => {
  const folder = readdirSync(MODELS).find((name) => existsSync(join(MODELS, name, 'tokenizer.json'))) ?? '';

  it('learns exactly the tokens of the answer, its end among them', async () => {
    const tokenizer = readTokenizerFile(join(MODELS, folder, 'tokenizer.json'));
    const rows = maskLines(
      readLines(bytes(GOOD), 1e6),
      { template, supervision: DEFAULT_SUPERVISION, templateArguments: {} },
      tokenizer,
    );
    const [row] = await collect(rows);
    if (row === undefined || 'error' in row) throw new Error(row?.error);
    expect(row.supervised).toHaveLength(row.ids.length);
    const learned = row.ids.filter((_, i) => row.supervised[i] === 1);
    const decoded = await tokenizer.tokenizer.decode([...learned], false);
    expect(decoded).toBe('<think>\n\n</think>\n\nHello 👋 there<|im_end|>');
    expect(await tokenizer.tokenizer.decode([...row.ids], false)).toContain('Hi 👋');
  });
});
