import { expect, test } from 'vitest';
import { eventWords } from '../../../renderer/views/run/eventWords.ts';

const words = (kind: string, data: Record<string, unknown> = {}) => eventWords({ atMs: 0, kind, data });

test('an event is told in words', () => {
  const evaluation = { step: 60, phase: 'during', loss: 4.072669278241865, tokens: 1779, best: true };
  expect(words('eval', evaluation)).toEqual({
    what: 'Evaluation',
    details: 'Held-out loss 4.073, perplexity 58.71, over 1,779 tokens; the lowest so far',
  });
  // JSON in the history has no number for it.
  expect(words('eval', { phase: 'before', loss: null, tokens: 1 }).details).toBe(
    'Before training: held-out loss is no number, over 1 token',
  );
  expect(words('checkpoint', { path: '/home/runs/a/out/checkpoint-00000060' }).details).toBe(
    'Saved as checkpoint-00000060',
  );
  expect(words('sample', { position: 0, text: 'Hello!' }).details).toBe('Prompt 1: Hello!');
  expect(words('warning', { code: 'x', message: 'no room', hint: 'Free some space.' }).details).toBe(
    'No room. Free some space.',
  );
  expect(words('paused').details).toBe('On request');
  expect(words('done', { step: 9, reason: 'completed' }).details).toBe('All its steps are taken');
  expect(words('done', { reason: 'its core is gone' }).details).toBe('its core is gone');
});

test('what this version does not know of is listed as it came', () => {
  expect(
    words('constructor', { best: false, nothing: null, parts: [1], loss: Number.NaN, lr: 1e-7 }),
  ).toEqual({
    what: 'constructor',
    details: 'loss NaN · lr 1e-7',
  });
});
