// @vitest-environment happy-dom
import { SVGRenderer } from 'echarts/renderers';
import { expect, onTestFinished, test } from 'vitest';
import { echarts } from '../../../renderer/charts/echarts.ts';
import { compareOption } from '../../../renderer/views/compare/compareOption.ts';
import { nearestLine, type DrawnLine } from '../../../renderer/views/compare/nearestLine.ts';

echarts.use([SVGRenderer]);
const line = (id: string, y: number[]): DrawnLine => ({
  ...{ id, name: `run ${id}`, color: 'c1', y },
  x: y.map((_, i) => i * 10),
});

test('the line drawn closest to the pointer is found between its points, and none that is far or has ended', () => {
  const lines = [line('low', [0, 1, 2]), line('high', [5, 5, 5]), line('short', [1.5, 1.5])];
  const toPixels = (value: number) => 100 - 10 * value;
  const at = (x: number, value: number) => nearestLine(lines, x, toPixels(value), toPixels);
  expect(at(5, 0.6)).toBe('low');
  expect(at(5, 1.4)).toBe('short');
  expect(at(15, 1.5)).toBe('low');
  expect(at(15, 4.4)).toBe('high');
  expect(at(5, 12)).toBeUndefined();
  expect(at(25, 2)).toBeUndefined();
});

test('of many lines those have a name at their end that lie apart', () => {
  const named = (lines: DrawnLine[], heightPx: number) =>
    (
      compareOption(lines, 'loss', 'step', undefined, heightPx).series as {
        id: string;
        endLabel: { show: boolean };
      }[]
    )
      .filter(({ endLabel }) => endLabel.show)
      .map(({ id }) => id);
  const fifty = Array.from({ length: 50 }, (_, i) => line(String(i), [10, i / 10]));
  expect(named(fifty.slice(0, 8), 100)).toHaveLength(8);
  // 10 units over 180 pixels: a name every unit.
  expect(named(fifty, 212)).toEqual(['0', '10', '20', '30', '40']);
});

test('names of lines that end at one place stand below one another', () => {
  const lines = ['a', 'b', 'c'].map((id, i) => line(id, [8, 4.9 + i / 50]));
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: 640, height: 360 });
  onTestFinished(() => {
    chart.dispose();
  });
  chart.setOption(compareOption(lines, 'loss'));
  const names = chart.renderToSVGString().matchAll(/translate\([\d.]+ ([\d.]+)\)"[^>]*>run \w</g);
  const heights = Array.from(names, ([, y]) => Number(y)).sort((a, b) => a - b);
  expect(heights).toHaveLength(3);
  expect(
    heights
      .slice(1)
      .map((y, i) => y - (heights[i] ?? 0))
      .every((gap) => gap >= 13.9),
  ).toBe(true);
});
