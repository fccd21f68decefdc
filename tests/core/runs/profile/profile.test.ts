import { describe, expect, it } from 'vitest';
import type { RunDetail } from '../../../../main/contract/runs.ts';
import { readProfile } from '../../../../main/core/runs/profile/readProfile.ts';
import { chromeTrace } from '../../../../main/core/runs/profile/trace.ts';

const run = (more: object = {}) =>
  ({
    plan: { strategy: 'padded', fill: 1 },
    recipe: { recompute: 'full' },
    kernels: [],
    ...more,
  }) as unknown as RunDetail;
const row = (operation: string, totalMs: number, more: object = {}) => ({
  ...{ operation, phase: 'forward', where: 'layers', calls: 2, averageUs: totalMs * 500, totalMs },
  ...more,
});
const stored = (more: object) =>
  JSON.stringify({
    ...{ step: 10, milliseconds: 100, spanMs: 98, realTokens: 60, positions: 100, recompute: 'full' },
    ...{ host: [], device: [] },
    ...more,
  });
const findings = (data: string, detail = run()) => readProfile(data, detail, undefined).verdict;

describe('the verdict', () => {
  it('sorts findings by what they would save', () => {
    const verdict = findings(
      stored({
        host: [
          row('linear_fwd', 60, { couldSaveMs: 6, percentOfRoof: 90 }),
          row('gdn_bwd', 20, { couldSaveMs: 15, percentOfRoof: 25 }),
          row('linear_fwd', 18, { phase: 'recompute', couldSaveMs: 0, percentOfRoof: 100 }),
        ],
      }),
    );
    expect(verdict.map(({ estimateMs }) => estimateMs)).toEqual(
      verdict.map(({ estimateMs }) => estimateMs).sort((a, b) => b - a),
    );
    expect(verdict[0]).toMatchObject({ advice: 'Set packing.strategy to best-fit.' });
    expect(verdict[0]?.estimateMs).toBeCloseTo(0.4 * 98);
    expect(verdict.find(({ finding }) => finding.startsWith('recomputation'))?.estimateMs).toBe(18);
    expect(verdict.find(({ finding }) => finding.startsWith('gdn_bwd at 25.0 %'))?.estimateMs).toBe(15);
  });

  it('says of what ranks exchange that a step of more bins has less of it', () => {
    const host = [row('linear_fwd', 60), row('reduce_scatter', 30, { couldSaveMs: 20, percentOfRoof: 33 })];
    const found = findings(stored({ host })).find(({ finding }) => finding.startsWith('reduce_scatter'));
    expect(found?.advice).toContain('gradAccumulation');
  });

  it('fills bins before it makes them larger, and leaves alone what is large already', () => {
    const host = [row('linear_fwd', 60, { couldSaveMs: 20 }), row('linear_fwd', 38, { phase: 'backward' })];
    const advice = (plan: object, more: object = {}) =>
      findings(stored({ host, realTokens: 100, ...more }), run({ plan })).find(({ finding }) =>
        finding.startsWith('linear_fwd at'),
      )?.advice;
    expect(advice({ strategy: 'best-fit', fill: 0.2 })).toMatch(/^The bins are 20 % full: more examples/);
    expect(advice({ strategy: 'in-order', fill: 0.2 })).toContain('best-fit');
    expect(advice({ strategy: 'best-fit', fill: 0.97 })).toContain('larger packing.budget');
    const large = { positions: 4096, realTokens: 4096 };
    expect(advice({ strategy: 'best-fit', fill: 0.97 }, large)).toContain('No setting');
  });

  it('advises nothing from a step in which memory was new', () => {
    const host = [row('linear_fwd', 60, { couldSaveMs: 20 })];
    const first = readProfile(stored({ host, stepsBefore: 0 }), run(), undefined);
    expect(first.verdict).toEqual([]);
    expect(first.summary).toContain('a later one');
    expect(findings(stored({ host, stepsBefore: 2 })).length).toBeGreaterThan(0);
  });

  it('names what can be changed before what is only told', () => {
    const host = [row('adamw', 60, { phase: 'optimizer', couldSaveMs: 50 }), row('linear_fwd', 40)];
    const told = readProfile(stored({ host, realTokens: 90 }), run(), undefined);
    expect(told.verdict.map(({ finding }) => finding.split(' ')[0])).toEqual(['padding', 'adamw']);
    expect(told.summary).toContain('padding');
  });

  it('does not call recomputation needless where memory would not hold without', () => {
    const host = [row('linear_fwd', 80), row('linear_fwd', 18, { phase: 'recompute' })];
    const memory = { planned: 10, activations: 5, withoutRecompute: 30, available: 20 };
    const names = (data: string) => findings(data).map(({ finding }) => finding);
    expect(names(stored({ host, memory })).some((name) => name.startsWith('recompu'))).toBe(false);
    expect(
      names(stored({ host, memory: { ...memory, available: 40 } })).some((name) =>
        name.startsWith('recompu'),
      ),
    ).toBe(true);
    expect(names(stored({ host, recompute: 'P0' })).some((name) => name.startsWith('recompu'))).toBe(false);
  });

  it('tells a GPU that waits for the CPU from one that works', () => {
    const device = [row('linear_fwd', 40)];
    const waits = readProfile(stored({ device, spanMs: 50, launches: 900 }), run(), undefined);
    expect(waits.headline).toContain('waits for the CPU');
    expect(waits.verdict.find(({ finding }) => finding.includes('idle'))?.estimateMs).toBe(50);
    expect(waits.verdict.find(({ finding }) => finding.includes('900 launches'))?.estimateMs).toBe(10);
    const works = readProfile(stored({ device: [row('linear_fwd', 97)], spanMs: 98 }), run(), undefined);
    expect(works.headline).toContain('The GPU holds this run back');
  });

  it('names slow kernels with what the profile says of their operation', () => {
    const kernels = [
      { operation: 'linear', forward: 'matrix_product_reference', slow: true, reason: 'no cuBLASLt' },
    ];
    const verdict = findings(
      stored({ device: [row('linear_fwd', 90, { couldSaveMs: 80 })] }),
      run({ kernels }),
    );
    expect(verdict.find(({ finding }) => finding.includes('matrix_product_reference'))).toMatchObject({
      estimateMs: 80,
    });
  });

  it('reads a profile of an engine that knew less', () => {
    const old = JSON.stringify({ event: 'profile', host: [row('linear_fwd', 1)], device: [] });
    expect(readProfile(old, run(), undefined)).toMatchObject({ timeline: [], positions: 0 });
  });
});

describe('the trace', () => {
  it('is a complete event for each operation and each layer, in microseconds', () => {
    const profile = readProfile(
      stored({
        host: [row('linear_fwd', 1)],
        timeline: {
          ...{ names: ['linear_fwd', 'adamw'], phases: ['forward', 'optimizer'] },
          spans: [
            [0, 0, 0, 0, 1.5],
            [0, 0, 0, 1.5, 1],
            [0, 0, 1, 2.5, 1],
            [1, 1, -1, 3.5, 2],
          ],
        },
      }),
      run(),
      undefined,
    );
    const { traceEvents } = JSON.parse(chromeTrace(profile, 'a "run"')) as {
      traceEvents: { name: string; ph: string; ts?: number; dur?: number; tid?: number }[];
    };
    const complete = traceEvents.filter(({ ph }) => ph === 'X');
    expect(complete.filter(({ tid }) => tid === 2)).toHaveLength(4);
    expect(complete.filter(({ tid }) => tid === 1).map(({ name, dur }) => [name, dur])).toEqual([
      ['layer 0 forward', 2500],
      ['layer 1 forward', 1000],
      ['update', 2000],
    ]);
    expect(complete.every(({ ts, dur }) => (ts ?? -1) >= 0 && (dur ?? -1) >= 0)).toBe(true);
  });
});
