import { expect, test } from 'vitest';
import { createDrawQueue } from '../../../renderer/charts/drawQueue.ts';

/** A clock that is set by hand: `drawMs` is what one drawing takes. */
function setUp(drawMs: number) {
  let nowMs = 0;
  let due: { work: () => void; atMs: number } | undefined;
  const queue = createDrawQueue({
    now: () => nowMs,
    later: (work, ms) => {
      due = { work, atMs: nowMs + ms };
    },
  });
  const drawn: [name: string, atMs: number][] = [];
  const chart = (name: string) => () => {
    drawn.push([name, nowMs]);
    nowMs += drawMs;
  };
  const pass = (untilMs: number) => {
    while (due !== undefined && due.atMs <= untilMs) {
      const { work, atMs } = due;
      due = undefined;
      nowMs = Math.max(nowMs, atMs);
      work();
    }
    nowMs = Math.max(nowMs, untilMs);
  };
  return { queue, chart, drawn, pass };
}

test('all charts are drawn in one go, each once however often it was asked for', () => {
  const { queue, chart, drawn, pass } = setUp(1);
  const [a, b] = [chart('a'), chart('b')];
  for (let i = 0; i < 50; i += 1) [a, b].forEach((draw) => queue.ask(draw));
  pass(50);
  expect(drawn).toEqual([
    ['a', 0],
    ['b', 1],
  ]);
});

test('not more than ten times a second, and the last change is never lost', () => {
  const { queue, chart, drawn, pass } = setUp(1);
  const draw = chart('a');
  for (let at = 0; at < 1000; at += 10) {
    pass(at);
    queue.ask(draw);
  }
  pass(2000);
  expect(drawn.length).toBe(11);
  expect(drawn.at(-1)![1]).toBeGreaterThanOrEqual(990);
});

test('slow drawing takes a small share of the time, and comes every second all the same', () => {
  const counts = [30, 400].map((drawMs) => {
    const { queue, chart, drawn, pass } = setUp(drawMs);
    const draw = chart('a');
    for (let at = 0; at < 10_000; at += 10) {
      pass(at);
      queue.ask(draw);
    }
    return drawn.length;
  });
  expect(counts[0]).toBe(50);
  expect(counts[1]).toBe(10);
});

test('what new data asks for comes into the same picture, and nothing goes round in circles', () => {
  const { queue, chart, drawn, pass } = setUp(1);
  const draw = chart('chart');
  const commit = () => {
    chart('data')();
    queue.ask(draw);
    queue.ask(commit);
  };
  queue.ask(commit);
  pass(50);
  expect(drawn.map(([name]) => name)).toEqual(['data', 'chart']);
  pass(150);
  expect(drawn.map(([name]) => name)).toEqual(['data', 'chart', 'data', 'chart']);
});

test('a chart that is gone is not drawn, and one that fails takes no other with it', () => {
  const { queue, chart, drawn, pass } = setUp(1);
  const [gone, next] = [chart('gone'), chart('next')];
  const bad = () => {
    throw new Error('no canvas');
  };
  queue.ask(gone);
  queue.ask(bad);
  queue.ask(next);
  queue.forget(gone);
  expect(() => pass(10)).toThrow('no canvas');
  pass(300);
  expect(drawn.map(([name]) => name)).toEqual(['next']);
});
