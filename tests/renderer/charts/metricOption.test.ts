// @vitest-environment happy-dom
import { beforeAll, describe, expect, it } from 'vitest';
import type { SeriesColumns } from '../../../renderer/charts/decimate.ts';
import { metricOption, type MetricChart } from '../../../renderer/charts/metricOption.ts';

beforeAll(() => {
  const tokens = { c1: '#64bbfc', c2: '#e2ac58', c8: '#8b939c', bad: '#f0775a', line: '#22262a' };
  for (const [name, value] of Object.entries(tokens))
    document.documentElement.style.setProperty(`--${name}`, value);
});

function ofValues(values: number[]): SeriesColumns {
  const x = values.map((_, i) => i + 1);
  return {
    ...{ steps: x, x, minimum: values, maximum: values, mean: values },
    numNonFinite: values.map((value) => (Number.isFinite(value) ? 0 : 1)),
  };
}
interface Drawn {
  id: string;
  data: ([number, number | null] | { value: number[]; symbol?: string })[];
  lineStyle?: { width: number };
  markArea?: { data: { xAxis: number }[][] };
  markLine?: { data: { xAxis?: number; yAxis?: number }[] };
  renderItem?: (params: unknown, api: unknown) => { shape: { points: number[][] } };
}
function draw(series: SeriesColumns, rest: Partial<MetricChart> = {}, from = 0, to = 1, widthPx = 472) {
  const option = metricOption(
    { series, color: 'c1', end: series.steps.length, format: String, ...rest },
    { widthPx, from, to },
  );
  const all = option.series as Drawn[];
  return {
    option: option as { xAxis: { max: number }; yAxis: { type: string; scale: boolean } },
    ids: all.map(({ id }) => id),
    of: (id: string) => all.find((one) => one.id === id)!,
  };
}

describe('the line of a live chart', () => {
  it('goes through every value while there is room, and has no band', () => {
    const { ids, of } = draw(ofValues([3, 1, 2]));
    expect(ids).toEqual(['line']);
    expect(of('line').data).toEqual([
      [1, 3],
      [2, 1],
      [3, 2],
    ]);
  });
  it('breaks where a value is no number, with a mark there', () => {
    const { of } = draw(ofValues([3, Number.NaN, 2, Infinity]));
    expect(of('line').data.map((point) => (point as number[])[1])).toEqual([3, null, 2, null]);
    expect(of('gaps').markLine!.data).toEqual([{ xAxis: 2 }, { xAxis: 4 }]);
  });
  it('is smoothed over the values, which stay in sight; the gap stays too', () => {
    const { ids, of } = draw(ofValues([4, 0, Number.NaN, 0]), { halfLife: 2 });
    expect(ids).toEqual(['line', 'each', 'gaps']);
    expect(of('each').data.map((point) => (point as number[])[1])).toEqual([4, 0, null, 0]);
    const [first, second, gap, last] = of('line').data.map((point) => (point as number[])[1]);
    expect(first).toBe(4);
    expect(second).toBeGreaterThan(0);
    expect(gap).toBeNull();
    expect(last).toBeLessThan(second!);
  });
  it('with a half-life of nothing is the values themselves', () => {
    expect(draw(ofValues([4, 0, 2]), { halfLife: 0 }).ids).toEqual(['line']);
  });
});

describe('more points than pixels', () => {
  const values = Array.from({ length: 50_000 }, (_, i) => 1 + (i % 7));
  values[33_333] = 90;
  it('are a point a pixel, and the spike reaches the band and the axis', () => {
    const { ids, of } = draw(ofValues(values), { halfLife: 20 });
    expect(ids).toEqual(['line', 'band']);
    expect(of('line').data.length).toBeLessThanOrEqual(401);
    expect(of('band').data[0]).toEqual([expect.any(Number), 1, 90]);
    const { shape } = of('band').renderItem!({}, { coord: (point: number[]) => point });
    expect(Math.max(...shape.points.map(([, y]) => y!))).toBe(90);
    expect(shape.points.length).toBeLessThanOrEqual(802);
  });
  it('are drawn one by one again when a part is looked at closely', () => {
    const { of } = draw(ofValues(values), {}, 0.666, 0.667);
    expect(of('line').data.map((point) => (point as number[])[1])).toContain(90);
    expect(of('line').data.length).toBeLessThan(60);
  });
  it('on a logarithmic axis leave out what has no place on it', () => {
    const { of } = draw(ofValues(values.map((value, i) => (i % 1000 === 0 ? -1 : value))), { isLog: true });
    expect((of('band').data[0] as number[])[1]).toBeGreaterThan(0);
  });
});

describe('the axes', () => {
  it('reach to the planned end; what has not happened is greyed', () => {
    const { option, of } = draw(ofValues([3, 1, 2]), { end: 10, from: 'data', isLog: true });
    expect(option.xAxis.max).toBe(10);
    expect(option.yAxis).toMatchObject({ type: 'log', scale: true });
    expect(of('line').markArea!.data).toEqual([[{ xAxis: 3 }, { xAxis: 10 }]]);
  });
  it('grow with a run that goes on beyond its plan, and stand without a single step', () => {
    expect(draw(ofValues([1, 2, 3]), { end: 2 }).option.xAxis.max).toBe(3);
    const none = draw(ofValues([]), { end: 0 });
    expect(none.option.xAxis.max).toBe(1);
    expect(none.of('line').data).toEqual([]);
  });
  it('count in other units where asked: a rate as a share of what can be reached', () => {
    const { of } = draw(ofValues([2e12, 4e12]), { unitSize: 8e10 });
    expect(of('line').data).toEqual([
      [1, 25],
      [2, 50],
    ]);
  });
  it('carry the limit and the evaluations in sight; the best has its own shape', () => {
    const { of } = draw(
      ofValues([3, 1, 2, 2]),
      {
        limit: 1.5,
        points: [
          { x: 1, value: 2 },
          { x: 2, value: 1, isBest: true },
          { x: 4, value: 9 },
          { x: 2, value: Number.NaN },
        ],
      },
      0,
      0.5,
    );
    expect(of('line').markLine!.data).toEqual([{ yAxis: 1.5 }]);
    expect(of('points').data).toEqual([
      { value: [1, 2] },
      { value: [2, 1], symbol: 'diamond', symbolSize: 11 },
    ]);
  });
});
