import type { ChartOption } from './echarts.ts';
import { smooth } from './smooth.ts';
import { token, withAlpha } from './tokens.ts';

/** Columns of equal length; where blocks of steps were merged, their extremes and mean. */
export interface SeriesColumns {
  steps: ArrayLike<number>;
  /** Places on the axis. */
  x: ArrayLike<number>;
  /** NaN where a point holds no number at all. */
  minimum: ArrayLike<number>;
  maximum: ArrayLike<number>;
  mean: ArrayLike<number>;
  /** How many of a point's values are NaN or infinite: drawn as a gap with a mark. */
  numNonFinite: ArrayLike<number>;
}

export interface MetricChart {
  series: SeriesColumns;
  /** Design token of the line: `c1`. */
  color: string;
  /** Where the run is planned to end on the axis; what lies beyond the newest value is drawn as not yet there. */
  end: number;
  isLog?: boolean;
  showsSteps?: boolean;
  /** Half-life of the smoothed line in steps; 0 draws the values themselves. */
  halfLife?: number;
  showsBand?: boolean;
  isFilled?: boolean;
  /** A horizontal dashed line with its value, such as the clip limit. */
  limit?: number;
  points?: { x: number; value: number; isBest?: boolean }[];
  /** Words for a place on the axis. */
  placeFormat?: (x: number) => string;
  from?: 'zero' | 'data';
  format: (value: number) => string;
  /** Shorter words for the axis; absent: `format`. */
  axisFormat?: (value: number) => string;
}

const insets = { left: 56, right: 16, top: 8 };
const compact = new Intl.NumberFormat('en-US');

/** What a live chart shows: a band from minimum to maximum, a line over it, the future in grey. Nothing is thinned. */
export function metricOption(chart: MetricChart): ChartOption {
  const { series, end } = chart;
  const { length } = series.steps;
  const newest = length === 0 ? 0 : (series.x[length - 1] ?? 0);
  const place = chart.placeFormat ?? ((x: number) => compact.format(Math.round(x)));
  const color = token(chart.color);
  const values =
    chart.halfLife === undefined ? series.mean : smooth(series.steps, series.mean, chart.halfLife);
  const label = { color: token('tx-3'), fontSize: 11, fontFamily: token('font-ui') };
  const lastPlace = Math.max(end, newest, 1);

  return {
    animation: false,
    grid: { ...insets, bottom: chart.showsSteps === true ? 24 : 8 },
    tooltip: { trigger: 'axis', showContent: false },
    axisPointer: {
      link: [{ xAxisIndex: 'all' }],
      lineStyle: { color: token('tx-2'), type: 'solid', width: 1 },
      label: {
        show: chart.showsSteps === true,
        backgroundColor: token('tx-1'),
        color: token('bg-1'),
        padding: [2, 5],
        borderRadius: 2,
        fontSize: 11,
        formatter: ({ value }: { value: number }) => place(value),
      },
    },
    dataZoom: [{ type: 'inside', filterMode: 'none', zoomOnMouseWheel: true, moveOnMouseMove: 'shift' }],
    xAxis: {
      type: 'value',
      min: 0,
      max: lastPlace,
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { show: false },
      axisLabel: {
        ...label,
        show: chart.showsSteps === true,
        formatter: place,
        hideOverlap: true,
      },
    },
    yAxis: {
      type: chart.isLog === true ? 'log' : 'value',
      ...(chart.from === 'data' && { scale: true }),
      splitNumber: 4,
      axisLine: { show: false },
      axisTick: { show: false },
      axisPointer: { show: false },
      splitLine: { lineStyle: { color: token('line'), width: 1 } },
      axisLabel: { ...label, formatter: chart.axisFormat ?? chart.format },
    },
    series: [
      ...(chart.showsBand === true && length > 0 ? [band(series, color, chart.isLog === true)] : []),
      // Each value as it came, under the smoothed line: smoothing is drawn over the values, never instead of them.
      ...(values === series.mean ? [] : [raw(series, color)]),
      {
        type: 'line',
        data: pairs(series.x, values, series.numNonFinite),
        symbol: length === 1 ? 'circle' : 'none',
        symbolSize: 5,
        itemStyle: { color },
        lineStyle: { width: chart.showsBand === true ? 1.75 : 1.25, color },
        ...(chart.isFilled === true && { areaStyle: { color: withAlpha(color, 0.14) } }),
        markArea: {
          silent: true,
          itemStyle: { color: withAlpha(token('c8'), 0.05) },
          data: newest < lastPlace ? [[{ xAxis: newest }, { xAxis: lastPlace }]] : [],
        },
        ...(chart.limit !== undefined && {
          markLine: {
            silent: true,
            symbol: 'none',
            label: { show: false },
            lineStyle: { color: token('tx-3'), type: [3, 3], width: 1 },
            data: [{ yAxis: chart.limit }],
          },
        }),
      },
      ...(chart.points === undefined
        ? []
        : [
            {
              type: 'scatter' as const,
              data: chart.points
                .filter(({ value }) => Number.isFinite(value) && (chart.isLog !== true || value > 0))
                .map(({ x, value, isBest }) => ({
                  value: [x, value],
                  ...(isBest === true && { symbol: 'diamond', symbolSize: 11 }),
                })),
              symbolSize: 7,
              itemStyle: { color: token('c2'), borderColor: token('bg-1'), borderWidth: 1.5 },
              z: 6,
            },
          ]),
      ...gaps(series),
    ],
  };
}

/** Where values are no numbers: a dashed line through the chart with a cross on top. */
function gaps(series: SeriesColumns) {
  const places: number[] = [];
  for (let i = 0; i < series.x.length; i += 1) {
    if ((series.numNonFinite[i] ?? 0) > 0) places.push(series.x[i] ?? 0);
  }
  if (places.length === 0) return [];
  const color = token('bad');
  return [
    {
      type: 'line' as const,
      name: 'gaps',
      data: [],
      markLine: {
        silent: true,
        symbol: ['none', `path://${cross}`],
        symbolSize: 8,
        label: { show: false },
        lineStyle: { color, type: [2, 4], width: 1, opacity: 0.7 },
        itemStyle: { color },
        data: places.map((xAxis) => ({ xAxis })),
      },
    },
  ];
}

const cross = 'M0 2 2 0 5 3 8 0 10 2 7 5 10 8 8 10 5 7 2 10 0 8 3 5Z';

function pairs(
  x: ArrayLike<number>,
  y: ArrayLike<number>,
  numNonFinite: ArrayLike<number>,
): (number | null)[][] {
  return Array.from({ length: x.length }, (_, i) => {
    const value = y[i] ?? Number.NaN;
    // A smoothed value goes on through what is no number; the line does not.
    return [x[i] ?? 0, Number.isFinite(value) && (numNonFinite[i] ?? 0) === 0 ? value : null];
  });
}

function raw(series: SeriesColumns, color: string) {
  return {
    type: 'line' as const,
    silent: true,
    symbol: 'none',
    lineStyle: { width: 1, color, opacity: 0.4 },
    data: pairs(series.x, series.mean, series.numNonFinite),
  };
}

/** One polygon over all points: cheaper than two stacked areas, and right on a log axis too. */
function band(series: SeriesColumns, color: string, isLog: boolean) {
  const { length } = series.steps;
  const usable: number[] = [];
  for (let i = 0; i < length; i += 1) {
    const low = series.minimum[i] ?? Number.NaN;
    if (Number.isFinite(low) && Number.isFinite(series.maximum[i]) && (!isLog || low > 0)) usable.push(i);
  }
  return {
    type: 'custom' as const,
    silent: true,
    clip: true,
    // The axis learns the extremes from the data; the item itself draws the whole band.
    encode: { x: 0, y: [1, 2] },
    data: usable.map((i) => [series.x[i], series.minimum[i], series.maximum[i]]),
    renderItem: (params: { dataIndexInside: number }, api: { coord: (point: number[]) => number[] }) => {
      if (params.dataIndexInside !== 0) return undefined;
      const upper = usable.map((i) => api.coord([series.x[i] ?? 0, series.maximum[i] ?? 0]));
      const lower = usable.map((i) => api.coord([series.x[i] ?? 0, series.minimum[i] ?? 0])).reverse();
      return {
        type: 'polygon',
        shape: { points: [...upper, ...lower] },
        style: { fill: color, opacity: 0.3 },
      };
    },
  };
}
