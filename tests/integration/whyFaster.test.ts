import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunSummary, WhyFaster } from '../../main/contract/runs.ts';
import { coreOf, tesseraJson, untilRun, workshop, type Workshop } from './workshop.ts';

let shop: Workshop;
beforeAll(() => {
  shop = workshop();
});
afterAll(async () => {
  await shop.close();
});

const train = async (...settings: string[]) =>
  (
    await tesseraJson<{ run: RunSummary }>(shop, [
      'train',
      shop.recipe,
      ...settings.flatMap((setting) => ['--set', setting]),
    ])
  ).run;
const why = async (a: RunSummary, b: RunSummary, ...more: string[]) => {
  const { whyFaster } = await tesseraJson<{ whyFaster?: WhyFaster }>(shop, [
    ...['runs', 'compare', a.id, b.id],
    ...more,
  ]);
  if (whyFaster === undefined) throw new Error('no waterfall');
  return whyFaster;
};
const sum = ({ parts }: WhyFaster) => parts.reduce((total, { us }) => total + us, 0);
const part = ({ parts }: WhyFaster, kind: string) =>
  parts.filter((each) => each.kind === kind).reduce((total, { us }) => total + us, 0);

/** The parts and what is left are the measured difference, and little is left. */
function expectExplained(found: WhyFaster, a: RunSummary, b: RunSummary): void {
  const gap = found.toUsPerToken - found.fromUsPerToken;
  expectAdds(found, a, b);
  // Every millisecond of the steps is in a part, so that nothing of a loaded machine's pauses falls between them.
  expect(Math.abs(found.unexplainedUs)).toBeLessThanOrEqual(0.001 * found.fromUsPerToken);
  expect(Math.abs(found.unexplainedUs)).toBeLessThanOrEqual(
    0.1 * Math.abs(gap) + 1e-6 * found.fromUsPerToken,
  );
}

function expectAdds(found: WhyFaster, a: RunSummary, b: RunSummary): void {
  const gap = found.toUsPerToken - found.fromUsPerToken;
  expect(found.fromUsPerToken).toBeCloseTo(1e6 / (a.tokensPerSecond ?? 0), 6);
  expect(found.toUsPerToken).toBeCloseTo(1e6 / (b.tokensPerSecond ?? 0), 6);
  expect(sum(found) + found.unexplainedUs).toBeCloseTo(gap, 9);
}

describe('why one run is faster', { timeout: 240_000 }, () => {
  it('finds padding between padded and packed, and the parts add up', async () => {
    const padded = await train('packing.strategy=padded', 'packing.budget=1024');
    const packed = await train('packing.budget=1024');
    const found = await why(padded, packed);
    expectExplained(found, padded, packed);
    expect(part(found, 'padding')).toBeLessThan(0);
    // The other way round everything changes its sign.
    const back = await why(packed, padded);
    expect(sum(back)).toBeCloseTo(-sum(found), 6);

    const whole = await why(padded, packed, '--whole');
    expect(sum(whole) + whole.unexplainedUs).toBeCloseTo(whole.toUsPerToken - whole.fromUsPerToken, 9);
    expect(whole.fromUsPerToken).toBeGreaterThan(found.fromUsPerToken);
    expect(whole.parts.map(({ name }) => name)).toContain('checkpoint');
  });

  it('finds recomputation between full and P0', async () => {
    const full = await train('recompute=full', 'packing.budget=1024');
    const none = await train('recompute=P0', 'packing.budget=1024');
    const found = await why(full, none);
    expectExplained(found, full, none);
    expect(part(found, 'recompute')).toBeLessThan(0);
    expect(Math.abs(part(found, 'padding'))).toBeLessThan(1e-9);
  });

  it('says why there is none', async () => {
    const old = await train('steps=2');
    const db = new Database(join(shop.home, 'tessera.sqlite'));
    db.prepare('DELETE FROM runAccounts WHERE runId = ?').run(old.id);
    db.close();
    const other = await train('steps=2');
    const found = await tesseraJson<{ whyFaster?: WhyFaster; whyNot?: string }>(shop, [
      ...['runs', 'compare', other.id, old.id],
    ]);
    expect(found.whyFaster).toBeUndefined();
    expect(found.whyNot).toContain(old.id);
  });

  it('adds up over a run that was stopped and resumed', async () => {
    const core = await coreOf(shop);
    const { run } = await tesseraJson<{ run: RunSummary }>(shop, [
      ...['train', shop.recipe, '--set', 'steps=80', '--detach'],
    ]);
    await untilRun(core, run.id, ({ steps }) => steps >= 3);
    await core.call('runs:command', { id: run.id, command: 'stop' });
    const resumed = await tesseraJson<{ run: RunSummary }>(shop, ['resume', run.id]);
    core.close();
    const short = await train('steps=20');
    expectAdds(await why(resumed.run, short), resumed.run, short);
  });
});
