import { expect, test } from 'vitest';
import { rankEntries } from '../../../renderer/components/paletteRanking.ts';

const entry = (title: string, group = 'Go') => ({ id: title, title, group, run: () => undefined });
const titles = (query: string, ...names: string[]) =>
  rankEntries(
    names.map((name) => entry(name)),
    query,
  ).map(({ title }) => title);

test('word starts beat the inside of words, tight matches beat scattered ones, the rest is left out', () => {
  expect(titles('ma', 'Compare by name', 'Summary', 'Machine')).toEqual([
    'Machine',
    'Summary',
    'Compare by name',
  ]);
  expect(titles('mach', 'Machine', 'Train')).toEqual(['Machine']);
  expect(titles('', 'Train', 'Machine')).toEqual(['Train', 'Machine']);
});
