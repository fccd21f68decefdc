/**
 * Compares tokens and masks with the `tokenizers` library of Python, on made-up tokenizers of every kind: `node
 * scripts/fuzzTokenizers.ts [--seed N] [--count N] [--python PROGRAM]`. Needs a Python with tokenizers. Prints every
 * difference; exits 1 if there is one.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { ExampleTokenizer } from '../main/core/datasets/tokenise/exampleTokenizer.ts';
import { Random } from '../main/core/random.ts';

interface MadeUp {
  tokenizer: string;
  cases: { text: string; ids: number[]; offsets: [number, number][] }[];
}

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '300' },
    python: { type: 'string', default: 'python3' },
    show: { type: 'string', default: '20' },
  },
});
const folder = mkdtempSync(join(tmpdir(), 'tessera-tokenizers-'));
const random = new Random(Number(options.seed));

function drawSpans(length: number): [number, number][] {
  const cuts = Array.from({ length: 4 }, () => random.below(length + 1)).sort((a, b) => a - b);
  return [0, 2].flatMap((i) => {
    const [from = 0, to = 0] = cuts.slice(i, i + 2);
    return from < to ? [[from, to] as [number, number]] : [];
  });
}

/** What differs for one tokenizer's texts; `refused` where it is refused by name. */
async function compare({ tokenizer, cases }: MadeUp): Promise<string[] | 'refused'> {
  const tokenizerFile = join(folder, 'tokenizer.json');
  writeFileSync(tokenizerFile, tokenizer);
  let opened: ExampleTokenizer;
  try {
    const model = { tokenizerFile, specialTokens: {}, addBos: false };
    opened = await ExampleTokenizer.open(model as unknown as Parameters<typeof ExampleTokenizer.open>[0]);
  } catch {
    return 'refused';
  }
  const examples = cases.map(({ text }) => {
    const supervised = drawSpans(Array.from(text).length);
    return { kind: 'chat' as const, pieces: [{ text, supervised }] };
  });
  const encoded = await opened.encode(examples);
  return cases.flatMap(({ text, ids, offsets }, i) => {
    const ours = encoded[i];
    const spans = examples[i]?.pieces[0]?.supervised ?? [];
    const got = Array.from(ours?.ids ?? []).join();
    if (got !== ids.join()) return [`${JSON.stringify(text)}: ids ${got}, Python ${ids.join()}`];
    const wanted = offsets.map(([begin, end]) =>
      Number(end > begin && spans.some(([from, to]) => begin >= from && end <= to)),
    );
    const mask = Array.from(ours?.supervised ?? []);
    if (mask.join() === wanted.join()) return [];
    return [
      `${JSON.stringify(text)} ${JSON.stringify(spans)}: mask ${mask.join('')}, by offsets ${wanted.join('')}`,
    ];
  });
}

const script = new URL('fuzzTokenizers.py', import.meta.url).pathname;
const python = spawn(options.python, [script, options.seed, options.count], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const counts = { tokenizers: 0, texts: 0, refused: 0, differences: 0 };
for await (const line of createInterface({ input: python.stdout })) {
  const madeUp = JSON.parse(line) as MadeUp;
  const found = await compare(madeUp);
  counts.tokenizers++;
  counts.texts += madeUp.cases.length;
  if (found === 'refused') counts.refused++;
  else if (found.length > 0) {
    counts.differences += found.length;
    const { normalizer, pre_tokenizer, added_tokens, model } = JSON.parse(madeUp.tokenizer) as Record<
      string,
      unknown
    >;
    const { type } = model as { type: string };
    if (counts.differences <= Number(options.show))
      console.log(
        `${JSON.stringify({ type, normalizer, pre_tokenizer, added_tokens })}\n  ${found.slice(0, 3).join('\n  ')}`,
      );
  }
}
rmSync(folder, { recursive: true });
console.log(
  `${counts.tokenizers} tokenizers, ${counts.texts} texts, ${counts.refused} refused, ${counts.differences} differences`,
);
process.exitCode = counts.differences === 0 && counts.tokenizers > counts.refused ? 0 : 1;
