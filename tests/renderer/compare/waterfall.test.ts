import { describe, expect, it } from 'vitest';
import type { WhyFaster } from '../../../main/contract/runs.ts';
import { groupSums, waterfallBars } from '../../../renderer/views/compare/waterfall.ts';

const why: WhyFaster = {
  ...{ from: { id: 'a', name: 'A' }, to: { id: 'b', name: 'B' }, fromUsPerToken: 100, toUsPerToken: 57 },
  parts: [
    { name: 'padding', kind: 'padding', us: -30 },
    ...Array.from({ length: 20 }, (_, i) => ({
      name: `op${String(i)}`,
      kind: 'kernel' as const,
      us: -(i % 4) / 2,
    })),
    { name: 'data', kind: 'data', us: 2 },
  ],
  unexplainedUs: 0,
  beside: [],
};
why.unexplainedUs = -43 - why.parts.reduce((sum, { us }) => sum + us, 0);

describe('the waterfall', () => {
  it('draws few bars, and loses none of the difference', () => {
    const bars = waterfallBars(why);
    expect(bars.length).toBeLessThanOrEqual(11);
    expect(bars.reduce((sum, { us }) => sum + us, 0)).toBeCloseTo(-43, 12);
    expect(bars.flatMap(({ of }) => of)).toHaveLength(why.parts.length);
    expect(bars.at(-1)?.name).toBe('unexplained');
  });

  it('sums up by group', () => {
    expect(groupSums(why).reduce((sum, { us }) => sum + us, 0)).toBeCloseTo(-43, 12);
  });
});
