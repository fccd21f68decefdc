import { expect, it } from 'vitest';
import { parseValue } from '../../../../main/core/datasets/schema/parse.ts';

it('reads what is nested 900 deep, and says of what is deeper where it is too deep', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  expect(parseValue(nested(900))).toHaveLength(1);
  for (const depth of [901, 20_000])
    expect(() => parseValue(nested(depth))).toThrow('Nested too deeply: line 1 column 901 (char 900)');
});
