import { ref } from 'vue';
import type { ExampleTokens } from '../../../main/contract/datasets.ts';
import { client } from '../../client.ts';
import { oneLine } from '../datasets/oneLine.ts';

const mostKept = 120;
const mostOnTheWay = 6;

/** Tokens of examples, sent for when they come into sight and kept while they are used. */
export function useWords(dataset: () => string) {
  /** Counts up when some came. */
  const numWords = ref(0);
  let known = new Map<number, ExampleTokens>();
  let asked = new Set<number>();
  let owner = '';

  function wordsOf(example: number): ExampleTokens | undefined {
    if (owner !== dataset()) {
      known = new Map<number, ExampleTokens>();
      asked = new Set<number>();
      owner = dataset();
    }
    const found = known.get(example);
    if (found === undefined) send(example);
    else {
      // The last used stands last: the first is the one to drop.
      known.delete(example);
      known.set(example, found);
    }
    return found;
  }
  function send(index: number): void {
    if (asked.has(index) || asked.size >= mostOnTheWay) return;
    const [mine, into] = [asked, known];
    mine.add(index);
    client.call('datasets:example', { id: owner, index }).then(
      (tokens) => {
        mine.delete(index);
        into.set(index, tokens);
        const [oldest] = into.keys();
        if (into.size > mostKept && oldest !== undefined) into.delete(oldest);
        numWords.value += 1;
      },
      () => {
        // The tiles stay without words; whoever opens the example is told why. It is not asked for again.
      },
    );
  }
  return { wordsOf, numWords };
}

/** The first words of an example as one line; '' where they cannot be had. */
export async function firstWords(dataset: string, example: number): Promise<string> {
  const { rows } = await client
    .call('datasets:previews', { id: dataset, indices: [example] })
    .catch(() => ({ rows: [] }));
  const { prompt = '', answer = '' } = rows[0] ?? {};
  return oneLine(prompt.trim() === '' ? answer : prompt).slice(0, 120);
}
