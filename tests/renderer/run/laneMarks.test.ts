import { describe, expect, it } from 'vitest';
import { clusterMarks, fitMarks, laneMarks, type LaneMark } from '../../../renderer/views/run/laneMarks.ts';

const mark = (step: number, text: string, rest: Partial<LaneMark> = {}): LaneMark => ({
  ...{ key: `${step}${text}`, kind: 'evaluation', step, row: 0, text, count: 1 },
  ...rest,
});
const share = (step: number) => step / 100;

describe('the words of marks in a lane', () => {
  it('are whole where there is room, cut where a neighbour is near, and gone where he is nearer still', () => {
    const fitted = fitMarks(
      [mark(0, '1.234'), mark(20, '1.234'), mark(26, '1.234'), mark(60, 'x')],
      share,
      500,
    );
    expect(fitted.map(({ textPx }) => textPx)).toEqual([33, 0, 33, 7]);
    const [note] = fitMarks([mark(10, 'warm-up halved, no harm so far'), mark(30, '1.2')], share, 500);
    expect(note!.textPx).toBe(100 - 16 - 8);
  });
  it('never reach a mark of their own row, and do not mind the other row', () => {
    for (let round = 0; round < 200; round += 1) {
      const marks = Array.from({ length: 8 }, (_, i) =>
        mark((i * 37 + round * 13) % 101, 'w'.repeat((i * 7 + round) % 60), { row: i % 3 === 0 ? 1 : 0 }),
      );
      const fitted = fitMarks(marks, share, 600);
      for (const row of [0, 1]) {
        const own = fitted.filter((one) => one.row === row);
        own.slice(1).forEach((next, i) => {
          const before = own[i]!;
          const from = next.isLate ? share(next.step) * 600 - next.textPx : share(next.step) * 600;
          if (before.textPx > 0)
            expect(share(before.step) * 600 + 16 + before.textPx).toBeLessThanOrEqual(from);
        });
      }
    }
  });
  it('of the last mark at the end of the lane stand before it', () => {
    const [, last] = fitMarks([mark(10, 'a'), mark(99, '4.068')], share, 500);
    expect(last).toMatchObject({ isLate: true, textPx: 33 });
  });
});

describe('marks', () => {
  it('of one kind that lie on one another become one with a number; notes and the best never', () => {
    const marks = [
      mark(1, 'a'),
      mark(2, 'b'),
      mark(3, 'c', { kind: 'note' }),
      mark(4, 'd', { kind: 'note' }),
      mark(5, 'e', { kind: 'best' }),
    ];
    const clustered = clusterMarks(marks, share, 0.045);
    expect(clustered.map(({ text, count }) => `${text}${count}`)).toEqual(['a2', 'c1', 'd1', 'e1']);
  });
  it('come of evaluations, notes and what happened; a failure is a warning in its own words', () => {
    const marks = laneMarks({
      evaluations: [{ step: 5, phase: 'during', loss: 1.5, perplexity: 4.5, tokens: 10 }],
      timeNotes: [{ id: 3, step: 6, atMs: 0, text: 'hm' }],
      events: [
        { atMs: 0, step: 7, kind: 'failed', data: { message: 'out of memory' } },
        { atMs: 0, step: 8, kind: 'checkpoint', data: {} },
        { atMs: 0, kind: 'checkpoint', data: {} },
        { atMs: 0, step: 9, kind: 'unknown', data: {} },
      ],
      bestStep: 5,
    });
    expect(marks.map(({ kind, step, text }) => [kind, step, text])).toEqual([
      ['best', 5, '1.500'],
      ['note', 6, 'hm'],
      ['warning', 7, 'out of memory'],
      ['checkpoint', 8, ''],
    ]);
  });
});
