import type { Series, RunAxis, RunMetric } from '../../../main/contract/runs.ts';
import type { ChartTable } from '../../charts/chartExport.ts';
import type { ChartOption } from '../../charts/echarts.ts';
import { smooth } from '../../charts/smooth.ts';
import { token } from '../../charts/tokens.ts';
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

/** Beside the curves: labels of the axes, and the runs' names. */
export const insets = { left: 56, right: 144, top: 8, bottom: 24 };

/**
 * The same metric of several runs over one axis; each line has its run's name at its end.
 * @param alignAt a loss at which all runs stand at 0; runs that never reach it are left out
 */
export function compareOption(
  lines: CompareLine[],
  metric: RunMetric,
  axis: RunAxis = 'step',
  alignAt?: number,
): ChartOption {
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
    series: lines.flatMap((line) => {
      const shift = alignAt === undefined ? 0 : placeOfLoss(line, alignAt);
      if (shift === undefined) return [];
      const { name, color, curve } = line;
      const values = lineValues(line, metric);
      return {
        type: 'line' as const,
        name,
        symbol: 'none',
        lineStyle: { width: 1.75, color: token(color) },
        itemStyle: { color: token(color) },
        endLabel: {
          show: true,
          formatter: '{a}',
          color: token(color),
          fontSize: 11,
          width: 128,
          overflow: 'truncate',
        },
        labelLayout: { moveOverlap: 'shiftY' },
        data: Array.from(curve.x, (x, i) => [x - shift, values[i] ?? Number.NaN]),
      };
    }),
  };
}
