import { describe, expect, it } from 'vitest';
import { sumAccounts, type Account, type Work } from '../../../main/core/runs/account.ts';
import { whyFaster } from '../../../main/core/runs/whyFaster.ts';

const work = (fields: Partial<Work>): Work => ({
  ...{
    steps: 10,
    realTokens: 1000,
    supervisedTokens: 500,
    positions: 1000,
    headRows: 500,
    milliseconds: 100,
  },
  ...fields,
});
const none = work({
  ...{ steps: 0, realTokens: 0, supervisedTokens: 0, positions: 0, headRows: 0, milliseconds: 0 },
});
const operation = (name: string, totalMs: number, more: Partial<Account['operations'][number]> = {}) => ({
  ...{ operation: name, phase: 'forward', where: 'layers', calls: 10, totalMs, flops: 0, bytes: 0 },
  ...more,
});
const account = (
  total: Partial<Work>,
  operations: Account['operations'],
  more: Partial<Account> = {},
): Account => ({
  total: work(total),
  cold: none,
  sample: work(total),
  parts: { engine: operations.reduce((sum, { totalMs }) => sum + totalMs, 0), data: 0, reporting: 0 },
  operations,
  ...more,
});
const part = (why: ReturnType<typeof whyFaster>, name: string) =>
  why.parts.find((each) => each.name === name)?.us ?? 0;
const total = (why: ReturnType<typeof whyFaster>) =>
  why.parts.reduce((sum, { us }) => sum + us, 0) + why.unexplainedUs;

describe('whyFaster', () => {
  it('gives all to padding where a position costs the same', () => {
    const padded = account({ positions: 2000, milliseconds: 200 }, [operation('linear_fwd', 200)]);
    const packed = account({ positions: 1000, milliseconds: 100 }, [operation('linear_fwd', 100)]);
    const why = whyFaster(padded, packed);
    expect([why.fromUsPerToken, why.toUsPerToken]).toEqual([200, 100]);
    expect(part(why, 'padding')).toBeCloseTo(-100);
    expect(part(why, 'linear_fwd')).toBe(0);
    expect(why.unexplainedUs).toBeCloseTo(0);
  });

  it('splits a change of both between padding and the kernel, and adds up', () => {
    const a = account({ positions: 2000, milliseconds: 200 }, [operation('gdn_fwd', 200)]);
    const b = account({ positions: 1000, milliseconds: 50 }, [operation('gdn_fwd', 50)]);
    const why = whyFaster(a, b);
    expect(part(why, 'padding')).toBeCloseTo(-1 * ((100 + 50) / 2));
    expect(part(why, 'gdn_fwd')).toBeCloseTo(-50 * 1.5);
    expect(total(why)).toBeCloseTo(why.toUsPerToken - why.fromUsPerToken, 12);
  });

  it('keeps padding out of the head and the update, which it does not make dearer', () => {
    const rows = [
      operation('linear_fwd', 50, { where: 'outside' }),
      operation('adamw', 50, { phase: 'optimizer', where: 'outside' }),
    ];
    const why = whyFaster(account({ positions: 3000 }, rows), account({ positions: 1000 }, rows));
    expect(part(why, 'padding')).toBe(0);
    expect(total(why)).toBeCloseTo(0);
  });

  it('names recomputation that only one run does, and time that nothing names', () => {
    const again = operation('linear_fwd', 30, { phase: 'recompute' });
    const a = account({ milliseconds: 140 }, [operation('linear_fwd', 100), again]);
    const b = account({ milliseconds: 104 }, [operation('linear_fwd', 100)]);
    const why = whyFaster(a, b);
    expect(why.parts.find(({ kind }) => kind === 'recompute')).toEqual({
      ...{ name: 'linear_fwd (recompute)', kind: 'recompute', us: -30 },
    });
    expect(why.unexplainedUs).toBeCloseTo(-6);
  });

  it('takes sampled steps for all, without what their events cost, and names the warm-up', () => {
    const sampled = (spanMs: number, gapsMs: number) =>
      account({ milliseconds: 300 }, [operation('linear_fwd', (spanMs - gapsMs) * 1)], {
        cold: { ...work({ steps: 1, milliseconds: 120 }) },
        sample: { ...work({ steps: 1, realTokens: 100, positions: 100, headRows: 50 }), spanMs },
      });
    // Steady: (300 − 120) ÷ 9 = 20 ms a step; the sampled one took 25 with its events.
    const why = whyFaster(sampled(25, 5), sampled(25, 10));
    expect(part(why, 'launch gaps')).toBeCloseTo((((10 - 5) * 0.8) / 100) * 1000);
    expect(part(why, 'linear_fwd')).toBeCloseTo(-part(why, 'launch gaps'));
    expect(part(why, 'warm-up')).toBe(0);
    expect(Math.abs(why.unexplainedUs)).toBeLessThan(1e-9);
  });

  it('with the whole run counts what stands beside the steps', () => {
    const beside = { engine: 100, data: 0, reporting: 0, checkpoint: 50, load: 10 };
    const a = account({}, [operation('linear_fwd', 100)], { parts: beside });
    const b = account({}, [operation('linear_fwd', 100)]);
    expect(whyFaster(a, b).fromUsPerToken).toBe(100);
    const whole = whyFaster(a, b, true);
    expect(whole.fromUsPerToken).toBe(160);
    expect(part(whole, 'checkpoint')).toBe(-50);
    expect(total(whole)).toBeCloseTo(-60);
  });
});

describe('sumAccounts', () => {
  it('adds the engines that worked on a run', () => {
    const stored = JSON.stringify(account({}, [operation('linear_fwd', 10)]));
    const sum = sumAccounts([stored, stored]);
    expect(sum?.total).toMatchObject({ steps: 20, milliseconds: 200 });
    expect(sum?.operations).toEqual([operation('linear_fwd', 20, { calls: 20 })]);
    expect(sumAccounts([])).toBeUndefined();
  });
});
