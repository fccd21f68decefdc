import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Ladder } from '../../main/contract/bench.ts';
import type { Preflight, RunDetail, RunSummary } from '../../main/contract/runs.ts';
import { engineBinary } from '../../main/core/engine/binary.ts';
import { coreOf, tessera, tesseraJson, workshop, type Workshop } from './workshop.ts';

const dryRun = (shop: Workshop, ...args: string[]) =>
  tesseraJson<Preflight>(shop, ['train', shop.recipe, '--dry-run', ...args]);
const item = (preflight: Preflight, name: string) => preflight.items.find((one) => one.name === name);

describe('the preflight', { timeout: 120_000 }, () => {
  let shop: Workshop;
  beforeAll(() => {
    shop = workshop();
  });
  afterAll(async () => {
    await shop.close();
  });

  it('proves on the real data that packed examples do not see each other, and that the kernels are right', async () => {
    const preflight = await dryRun(shop);
    expect(preflight.ok).toBe(true);
    expect(preflight.isolation).toMatchObject({ ok: true, device: 'cpu', failures: [] });
    expect(preflight.isolation?.examples.length).toBeGreaterThan(1);
    expect(preflight.isolation?.alone.relativeError).toBeLessThanOrEqual(
      preflight.isolation?.alone.tolerance ?? 0,
    );
    expect(item(preflight, 'isolation')).toMatchObject({
      status: 'pass',
      message: expect.stringMatching(/examples in one pack .* moves no bit of the others/) as string,
    });
    expect(preflight.numerics?.kernels.length).toBeGreaterThan(20);
    expect(preflight.numerics?.kernels.every(({ ok }) => ok)).toBe(true);
    expect(item(preflight, 'numerics')?.status).toBe('pass');
  });

  it('is stored with the run', async () => {
    const { run } = await tesseraJson<{ run: RunSummary }>(shop, [
      'train',
      shop.recipe,
      ...['--set', 'packing.strategy=padded', '--set', 'gradAccumulation=2'],
    ]);
    const { run: detail } = await tesseraJson<{ run: RunDetail }>(shop, ['runs', 'show', run.id]);
    // Steps are counted, not guessed; their time is forecast with an error, and both stand beside what came of it.
    expect(detail.steps).toBe(detail.preflight?.steps);
    expect(detail.plan.steps).toBe(detail.steps);
    expect(detail.forecast?.seconds).toBeGreaterThan(0);
    expect(detail.forecast?.errorSeconds).toBeGreaterThan(0);
    expect(detail.forecast?.tookSeconds).toBeCloseTo(detail.activeMs / 1000);
    const time = item(detail.preflight!, 'time');
    expect(time?.message).toMatch(
      /^[\d.]+ s ± [\d.]+ s \(\d+ %\) for the steps; from \d+ steps timed on cpu$/,
    );
    const again = await dryRun(shop, '--set', 'packing.strategy=padded', '--set', 'gradAccumulation=2');
    expect(item(again, 'time')?.message).toMatch(/ and 1 run$/);
    expect(detail.preflight?.isolation?.ok).toBe(true);
    expect(detail.preflight?.numerics?.ok).toBe(true);
  });
});

describe('the ladder', { timeout: 120_000 }, () => {
  let shop: Workshop;
  beforeAll(() => {
    shop = workshop();
  });
  afterAll(async () => {
    await shop.close();
  });

  it('is measured on the same examples, padding computed, and kept', async () => {
    const where = ['--model', shop.model, '--dataset', join(shop.folder, 'chats.jsonl'), '--device', 'cpu'];
    const size = ['--budget', '256', '--examples', '12', '--rounds', '2'];
    const { ladder } = await tesseraJson<{ ladder: Ladder }>(shop, ['bench', 'ladder', ...where, ...size]);
    const [reference, padded, packed] = ladder.rungs;
    expect(ladder).toMatchObject({ device: 'cpu', examples: 12, rounds: 2, budget: 256 });
    expect(reference).toMatchObject({ deltaRule: 'gdn_fwd_recurrent_cpu', factor: 1 });
    expect(padded).toMatchObject({ deltaRule: 'gdn_fwd_chunked_cpu', strategy: 'padded' });
    expect(packed?.strategy).toBe('best-fit');
    expect(new Set(ladder.rungs.map(({ tokens }) => tokens)).size).toBe(1);
    expect(padded?.positions).toBeGreaterThan(padded?.tokens ?? 0);
    expect(packed?.positions).toBe(packed?.tokens);
    const core = await coreOf(shop);
    expect((await core.call('bench:ladders', {})).ladders).toEqual([ladder]);
    const nothing = core.call('bench:ladder', { dataset: 'no-such-data', rounds: 1 });
    await expect(nothing).rejects.toMatchObject({
      message: expect.stringContaining('no-such-data') as string,
    });
    core.close();
  });
});

describe('an engine that loses a boundary', { timeout: 120_000 }, () => {
  let shop: Workshop;
  beforeAll(() => {
    shop = workshop();
    // The real engine, told to join two neighbours whenever it is to prove that it keeps them apart.
    const leaky = join(shop.folder, 'leakyEngine');
    const real = engineBinary();
    writeFileSync(
      leaky,
      `#!/bin/sh\nif [ "$1" = verify ]; then shift; exec '${real}' verify --leak "$@"; fi\nexec '${real}' "$@"\n`,
    );
    chmodSync(leaky, 0o755);
    shop.env = { ...shop.env, TESSERA_ENGINE: leaky };
  });
  afterAll(async () => {
    await shop.close();
  });

  it('is found out, with the examples named, and does not train', async () => {
    const { code, out, log } = await tessera(shop, ['train', shop.recipe, '--dry-run', '--json']);
    expect(code).toBe(1);
    // What nothing is counted of is told in words.
    expect(log).toContain('Proving isolation and numerics…');
    expect(log).not.toMatch(/\b0\s*$/m);
    const preflight = JSON.parse(out) as Preflight;
    expect(preflight.ok).toBe(false);
    const isolation = item(preflight, 'isolation');
    expect(isolation?.status).toBe('stop');
    expect(isolation?.message).toMatch(/see each other: .* example \d+/);
    expect(isolation?.hint).toContain('learn across examples');

    const started = await tessera(shop, ['train', shop.recipe, '--json']);
    expect(started.code).not.toBe(0);
    expect(started.out + started.log).toContain('see each other');
    const { runs } = await tesseraJson<{ runs: RunSummary[] }>(shop, ['runs', 'list']);
    expect(runs).toEqual([]);
  });
});
