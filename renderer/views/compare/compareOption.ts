import type { Series, RunAxis, RunMetric } from '../../../main/contract/runs.ts';
import type { ChartTable } from '../../charts/chartExport.ts';
import type { ChartOption } from '../../charts/echarts.ts';
import { smooth } from '../../charts/smooth.ts';
import { token } from '../../charts/tokens.ts';
import type { DrawnLine } from './nearestLine.ts';
import { compactCount, decimal, duration, scientific } from '../../format.ts';

const formats: Record<RunMetric, (value: number) => string> = {
  loss: (value) => decimal(value, 3),
  tokensPerSecond: compactCount,
  gradNorm: (value) => decimal(value, 2),
  learningRate: scientific,
  milliseconds: (value) => decimal(value, 1),
  flopsPerSecond: compactCount,
};

export interface CompareLine {
  name: string;
  color: string;
  curve: Series;
}

export const axes: Record<RunAxis, { label: string; by: string; format: (value: number) => string }> = {
  step: { label: 'Step', by: 'by step', format: compactCount },
  tokens: { label: 'Real tokens', by: 'by real tokens', format: compactCount },
  elapsed: { label: 'Time', by: 'by wall time', format: duration },
  flops: { label: 'FLOPs', by: 'by floating-point operations', format: (value) => value.toExponential(1) },
};

/** Losses jump from step to step: what is read off and aligned is their smoothed line. */
export function lineValues({ curve }: CompareLine, metric: RunMetric): ArrayLike<number> {
  return metric === 'loss'
    ? smooth(curve.steps, curve.mean, Math.max(2, curve.steps.length / 60))
    : curve.mean;
}

/** Where a run's smoothed loss first is at or under `loss`; undefined where it never is. */
export function placeOfLoss(line: CompareLine, loss: number): number | undefined {
  const values = lineValues(line, 'loss');
  for (let i = 0; i < values.length; i += 1) if ((values[i] ?? Infinity) <= loss) return line.curve.x[i];
  return undefined;
}

export function compareTable(lines: CompareLine[], metric: RunMetric, axis: RunAxis): ChartTable {
  return {
    columns: ['run', 'step', axis, metric, 'minimum', 'maximum'],
    rows: lines.flatMap(({ name, curve }) =>
      Array.from(curve.steps, (step, i) => [
        name,
        step,
        curve.x[i] ?? null,
        curve.mean[i] ?? null,
        curve.minimum[i] ?? null,
        curve.maximum[i] ?? null,
      ]),
    ),
  };
}

/** Of more runs than there are colours not all can be named beside their lines. */
export const mostNamed = 8;

/** Beside the curves: labels of the axes, and the runs' names. */
export const insets = { left: 56, right: 144, top: 8, bottom: 24 };

/** Lines as they are drawn: smoothed, and moved to where they reach `alignAt`; those that never do are left out. */
export function drawnLines(lines: CompareLine[], metric: RunMetric, alignAt?: number): DrawnLine[] {
  return lines.flatMap((line) => {
    const shift = alignAt === undefined ? 0 : placeOfLoss(line, alignAt);
    if (shift === undefined) return [];
    const { name, color, curve } = line;
    const x = Array.from(curve.x, (at) => at - shift);
    return { id: curve.runId, name, color, x, y: lineValues(line, metric) };
  });
}

/**
 * The same metric of several runs over one axis; each line has its run's name at its end. Of many runs those have it whose
 * ends lie apart, and a tooltip names the one that the pointer is at.
 * @param focused id of that one
 * @param heightPx of the whole chart
 */
export function compareOption(
  lines: DrawnLine[],
  metric: RunMetric,
  axis: RunAxis = 'step',
  focused: () => string | undefined = () => undefined,
  heightPx = 0,
): ChartOption {
  const areMany = lines.length > mostNamed;
  const room = (heightPx - insets.top - insets.bottom) / nameSpacingPx;
  const named = areMany ? namesApart(lines, Math.max(1, room), metric === 'gradNorm') : undefined;
  const label = { color: token('tx-3'), fontSize: 11, fontFamily: token('font-ui') };
  return {
    animation: false,
    grid: insets,
    tooltip: {
      trigger: 'axis',
      order: 'valueDesc',
      backgroundColor: token('pop'),
      borderColor: token('line-2'),
      textStyle: { color: token('tx-1'), fontSize: 12, fontFamily: token('font-ui') },
      ...(areMany && {
        formatter: (points: Point[]) =>
          nameOne(points, focused(), { place: axes[axis].format, value: formats[metric] }),
      }),
      valueFormatter: (value: unknown) => (typeof value === 'number' ? formats[metric](value) : '–'),
      axisPointer: { lineStyle: { color: token('tx-2'), type: 'solid' } },
    },
    dataZoom: [{ type: 'inside', filterMode: 'none' }],
    xAxis: {
      type: 'value',
      splitLine: { show: false },
      axisLine: { show: false },
      axisTick: { show: false },
      axisLabel: { ...label, formatter: axes[axis].format },
      axisPointer: {
        triggerEmphasis: false,
        label: { formatter: ({ value }: { value: number }) => axes[axis].format(value) },
      },
    },
    yAxis: {
      type: metric === 'gradNorm' ? 'log' : 'value',
      scale: metric === 'loss',
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { lineStyle: { color: token('line') } },
      axisLabel: { ...label, formatter: formats[metric] },
    },
    series: lines.map(({ id, name, color, x, y }) => ({
      type: 'line' as const,
      ...{ id, name, symbol: 'none' },
      lineStyle: { width: areMany ? 1.25 : 1.75, color: token(color) },
      itemStyle: { color: token(color) },
      emphasis: { focus: 'series' as const, lineStyle: { width: 2.5 } },
      blur: { lineStyle: { opacity: 0.15 }, endLabel: { opacity: 0.15 } },
      endLabel: {
        show: named?.has(id) ?? true,
        formatter: '{a}',
        color: token(color),
        fontSize: 11,
        fontFamily: token('font-ui'),
        // Named: otherwise it is the width of a Chinese letter, which not every machine has.
        lineHeight: 14,
        width: 128,
        overflow: 'truncate',
      },
      labelLayout: { moveOverlap: 'shiftY' },
      data: x.map((at, i) => [at, y[i] ?? Number.NaN]),
    })),
  };
}

/** A name's height, and what an axis that begins and ends at round numbers takes from it. */
const nameSpacingPx = 18;

/** Ids of lines whose ends lie a share 1 ÷ `room` of all values apart: the lowest first, as the best losses are. */
function namesApart(lines: DrawnLine[], room: number, isLog: boolean): Set<string> {
  const scale = (value: number) => (isLog ? Math.log(value) : value);
  let [low, high] = [Infinity, -Infinity];
  for (const { y } of lines)
    for (let i = 0; i < y.length; i += 1) {
      const value = scale(y[i] ?? Number.NaN);
      if (value < low) low = value;
      if (value > high) high = value;
    }
  const ends = lines
    .map(({ id, y }) => ({ id, end: scale(y[y.length - 1] ?? Number.NaN) }))
    .filter(({ end }) => Number.isFinite(end))
    .sort((a, b) => a.end - b.end);
  let last = -Infinity;
  const apart = ends.filter(({ end }) => {
    if (end - last < (high - low) / room) return false;
    last = end;
    return true;
  });
  return new Set(apart.map(({ id }) => id));
}

interface Point {
  seriesId?: string;
  seriesName?: string;
  color?: string;
  value?: unknown;
  axisValue?: number;
}

/** One run's name and value, and where it is. */
function nameOne(
  points: Point[],
  id: string | undefined,
  write: { place: (x: number) => string; value: (y: number) => string },
): HTMLElement | string {
  const point = points.find(({ seriesId }) => seriesId === id);
  if (id === undefined || point === undefined) return '';
  const [x, y] = point.value as [number, number];
  const words = document.createElement('div');
  const name = document.createElement('div');
  name.textContent = point.seriesName ?? '';
  name.style.color = point.color ?? '';
  name.style.fontWeight = '600';
  words.append(name, `${write.value(y)} at ${write.place(x)}`);
  return words;
}
