import { expect, test } from 'vitest';
import { Random } from '../../main/core/random.ts';

test('the sequence of a seed never changes', () => {
  const random = new Random(7);
  expect([random.uint32(), random.uint32(), random.uint32()]).toMatchInlineSnapshot(`
    [
      3193087375,
      2418263919,
      486529847,
    ]
  `);
});

test('seeds and streams differ from each other', () => {
  const first = (seed: number, stream = 0) => new Random(seed, stream).uint32();
  const drawn = [
    first(0),
    first(1),
    first(2 ** 32),
    first(2 ** 33),
    first(-1),
    first(0, 1),
    first(0, 2),
    first(1, 1),
  ];
  expect(new Set(drawn).size).toBe(drawn.length);
  expect(() => new Random(0.5)).toThrow(/seed must be an integer/);
});

test('below is even, uniform stays in [0, 1), normal has mean 0 and variance 1', () => {
  const random = new Random(1);
  const counts = new Int32Array(7);
  let sum = 0;
  let squares = 0;
  for (let i = 0; i < 70_000; i++) {
    counts[random.below(7)]! += 1;
    const u = random.uniform();
    if (u < 0 || u >= 1) throw new Error(`uniform gave ${u}`);
    const x = random.normal();
    sum += x;
    squares += x * x;
  }
  for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(400);
  expect(Math.abs(sum / 70_000)).toBeLessThan(0.02);
  expect(Math.abs(squares / 70_000 - 1)).toBeLessThan(0.03);
});

test('a shuffle keeps every element and moves most', () => {
  const shuffled = new Random(3).shuffle(Int32Array.from({ length: 1000 }, (_, i) => i));
  expect(shuffled.filter((value, i) => value === i).length).toBeLessThan(10);
  expect([...shuffled].sort((a, b) => a - b)).toEqual(Array.from({ length: 1000 }, (_, i) => i));
});
