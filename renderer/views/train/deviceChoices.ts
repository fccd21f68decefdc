import type { Choice } from './recipeFields.ts';

/** Each GPU that the engine can use, then several as ranks of one run: the first two, four, … and all of them. */
export function deviceChoices(gpus: Record<string, unknown>[]): Choice[] {
  const single = gpus.flatMap(({ device, name }) =>
    typeof device === 'string'
      ? [{ value: device, label: typeof name === 'string' ? `${device}, ${name}` : device }]
      : [],
  );
  const numbers = single.flatMap(({ value }) => /^cuda:(\d+)$/.exec(value)?.[1] ?? []);
  const counts = new Set<number>();
  for (let count = 2; count < numbers.length; count *= 2) counts.add(count);
  if (numbers.length > 1) counts.add(numbers.length);
  const several = [...counts].map((count) => {
    const value = `cuda:${numbers.slice(0, count).join(',')}`;
    return { value, label: `${value}, ${count === numbers.length ? 'all ' : ''}${String(count)} GPUs` };
  });
  return [...single, ...several];
}
