import { expect, test } from 'vitest';
import { eventWords } from '../../../renderer/views/run/eventWords.ts';

test('an event’s details are one short line', () => {
  const data = {
    step: 60,
    phase: 'during',
    loss: 4.072669278241865,
    tokens: 1779,
    best: true,
    perplexity: 58.71,
  };
  expect(eventWords(data)).toBe('phase during · loss 4.073 · tokens 1,779 · best · perplexity 58.71');
  expect(eventWords({ best: false, nothing: null, parts: [1], loss: Number.NaN, lr: 1e-7 })).toBe(
    'loss NaN · lr 1e-7',
  );
});
