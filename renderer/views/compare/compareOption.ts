import type { RunMetric, Series } from '../../../main/contract/runs.ts';
import type { ChartOption } from '../../charts/echarts.ts';
import { smooth } from '../../charts/smooth.ts';
import { token } from '../../charts/tokens.ts';
import { compactCount, decimal, integer, scientific } from '../../format.ts';

const formats: Record<RunMetric, (value: number) => string> = {
  loss: (value) => decimal(value, 3),
  tokensPerSecond: compactCount,
  gradNorm: (value) => decimal(value, 2),
  learningRate: scientific,
  milliseconds: (value) => decimal(value, 1),
  flopsPerSecond: compactCount,
};

/** The same metric of several runs over one axis of steps; each line has its run's name at its end. */
export function compareOption(
  lines: { name: string; color: string; series: Series }[],
  metric: RunMetric,
): ChartOption {
  const label = { color: token('tx-3'), fontSize: 11, fontFamily: token('font-ui') };
  return {
    animation: false,
    grid: { left: 56, right: 144, top: 8, bottom: 24 },
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
      axisLabel: { ...label, formatter: integer },
    },
    yAxis: {
      type: metric === 'gradNorm' ? 'log' : 'value',
      scale: metric === 'loss',
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { lineStyle: { color: token('line') } },
      axisLabel: { ...label, formatter: formats[metric] },
    },
    series: lines.map(({ name, color, series }) => {
      const values =
        metric === 'loss'
          ? smooth(series.steps, series.mean, Math.max(2, series.steps.length / 60))
          : series.mean;
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
        data: Array.from(series.steps, (step, i) => [step, values[i] ?? Number.NaN]),
      };
    }),
  };
}
