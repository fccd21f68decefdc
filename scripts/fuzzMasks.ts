/**
 * Compares supervision masks with where Python's Jinja2 prints which message, on random chat templates: `node
 * scripts/fuzzMasks.ts [--seed N] [--count N]`. Needs python3 with jinja2. What the assistant says must be learned, what
 * others say never. Prints every difference; exits 1 if there is one.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { TemplateError } from '../main/core/datasets/template/errors.ts';
import { DEFAULT_SUPERVISION } from '../main/core/datasets/template/supervision.ts';
import { compileTemplate } from '../main/core/datasets/template/template.ts';
import { fromJs } from '../main/core/datasets/template/values.ts';

interface Case {
  readonly template: string;
  readonly messages: { role: string; content: string }[];
  readonly text?: string;
  readonly error?: string;
  /** By code point: the message that it came from, or which part of a turn's frame it is. */
  readonly whose?: (number | 'open' | 'close' | null)[];
}

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '5000' },
    show: { type: 'string', default: '20' },
  },
});

/** By code point: 1 where it must be learned, 0 where it must not, undefined where nobody knows. */
function wantedMask(whose: NonNullable<Case['whose']>, messages: Case['messages']): (0 | 1 | undefined)[] {
  let last = -1;
  return whose.map((who) => {
    if (typeof who === 'number') last = who;
    if (who === null) return undefined;
    return who !== 'open' && messages[last]?.role === 'assistant' ? 1 : 0;
  });
}

/** What is wrong with our mask of a case; undefined where nothing is. */
function difference({ template, messages, text, error, whose }: Case): string | undefined {
  const context = {
    messages: fromJs(messages),
    ...{ tools: null, documents: null, add_generation_prompt: false, bos_token: '<s>', eos_token: '</s>' },
  };
  try {
    const ours = compileTemplate(template).renderSupervised(context, DEFAULT_SUPERVISION);
    if (text === undefined) return `Python fails (${error ?? ''}), we render ${JSON.stringify(ours.text)}`;
    if (ours.text !== text) return `Python renders ${JSON.stringify(text)}, we ${JSON.stringify(ours.text)}`;
    const points = Array.from(text);
    const learned = new Uint8Array(points.length);
    for (const [from, to] of ours.supervised) learned.fill(1, from, to);
    const wanted = wantedMask(whose ?? [], messages);
    const wrong = points.map((_, at) => at).filter((at) => (wanted[at] ?? learned[at]) !== learned[at]);
    if (wrong.length === 0) return undefined;
    const spans = ours.supervised.map(([from, to]) => points.slice(from, to).join(''));
    const which = wrong.map((at) => points[at]).join('');
    return `wrong at ${JSON.stringify(which)} of ${JSON.stringify(text)}: learned ${JSON.stringify(spans)}`;
  } catch (thrown) {
    if (!(thrown instanceof TemplateError)) throw thrown;
    return text === undefined ? undefined : `Python renders, we fail: ${thrown.describe()}`;
  }
}

async function main(): Promise<number> {
  const script = new URL('fuzzMasks.py', import.meta.url).pathname;
  const python = spawn('python3', [script, options.seed, options.count], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let numCases = 0;
  let numKnown = 0;
  let numDifferences = 0;
  for await (const line of createInterface({ input: python.stdout })) {
    const wanted = JSON.parse(line) as Case;
    const found = difference(wanted);
    numCases++;
    if (wanted.whose !== undefined) numKnown++;
    if (found === undefined) continue;
    if (++numDifferences <= Number(options.show))
      console.log(`${JSON.stringify(wanted.template)}\n  ${found}`);
  }
  console.log(`${numCases} templates, ${numKnown} with known origins, ${numDifferences} differences`);
  return numDifferences === 0 && numKnown > 0 ? 0 : 1;
}

process.exitCode = await main();
