import { expect, test } from 'vitest';
import type { RunFigures } from '../../../main/contract/runs.ts';
import { bestOf, knownResults, shortCell, type Compared } from '../../../renderer/views/compare/figures.ts';

test('a path is told by its end, all else as it is', () => {
  expect(shortCell('/home/me/sets/support-v3.jsonl')).toBe('…/support-v3.jsonl');
  expect(shortCell('C:\\sets\\support.jsonl')).toBe('…/support.jsonl');
  expect(['support-649d', 'a/b', 0.1 + 0.2, undefined].map(shortCell)).toEqual([
    'support-649d',
    'a/b',
    '0.3',
    '–',
  ]);
});

test('a run that failed early is not the better for the time that it took', () => {
  const runs = (['completed', 'failed', 'completed'] as const).map(
    (status, i) =>
      ({
        run: { status, elapsedMs: [9000, 500, 8000][i], lastLoss: 2 + i },
        color: 'c1',
      }) as unknown as Compared,
  );
  const figures = runs.map((): RunFigures => ({ realTokens: 1, positions: 1 }));
  const best = Object.fromEntries(
    knownResults(runs, figures).map((line) => [line.label, bestOf(line, runs, figures)]),
  );
  expect(best).toMatchObject({ Took: 8000, 'Loss, last steps': 2 });
});
