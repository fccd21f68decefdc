import { decimate, type DrawnColumns, type SeriesColumns } from './decimate.ts';
import type { ChartOption } from './echarts.ts';
import { smooth } from './smooth.ts';
import { token, withAlpha } from './tokens.ts';
import type { Sight } from './useChart.ts';

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
  isFilled?: boolean;
  /** A horizontal dashed line with its value, such as the clip limit. */
  limit?: number;
  points?: { x: number; value: number; isBest?: boolean }[];
  /** What is planned beyond the newest value: a dashed line. */
  planned?: { x: number; value: number }[];
  /** Stretches of the axis that are marked, such as those in which a GPU was held back. */
  shaded?: { from: number; to: number }[];
  /** Words for a place on the axis. */
  placeFormat?: (x: number) => string;
  from?: 'zero' | 'data';
  /** The axis counts in this many of the series' units; `axisFormat` takes what it counts, `format` the series' own. */
  unitSize?: number;
  /** Upper end of the axis of values where it is fixed. */
  max?: number;
  /** Room for three labels beside it, no more. */
  isSmall?: boolean;
  format: (value: number) => string;
  /** Shorter words for the axis; absent: `format`. */
  axisFormat?: (value: number) => string;
}

const insets = { left: 56, right: 16, top: 8 };
const compact = new Intl.NumberFormat('en-US');

/**
 * What a live chart shows: a band from minimum to maximum, a line over it, the future in grey. Points denser than pixels
 * are merged by `decimate`; the axis of values fits the part in sight.
 */
export function metricOption(chart: MetricChart, sight: Pick<Sight, 'widthPx' | 'from' | 'to'>): ChartOption {
  const { series, end } = chart;
  const { length } = series.steps;
  const newest = length === 0 ? 0 : (series.x[length - 1] ?? 0);
  const place = chart.placeFormat ?? ((x: number) => compact.format(Math.round(x)));
  const color = token(chart.color);
  const lastPlace = Math.max(end, newest, 1);
  const isSmoothed = chart.halfLife !== undefined && chart.halfLife > 0;
  const values = isSmoothed ? smooth(series.steps, series.mean, chart.halfLife ?? 0) : series.mean;
  const drawn = inUnits(
    chart.unitSize,
    decimate(series, values, {
      widthPx: Math.max(1, Math.floor(sight.widthPx) - insets.left - insets.right),
      from: sight.from * lastPlace,
      to: sight.to * lastPlace,
    }),
  );

  return {
    animation: false,
    // Stacked charts share their insets: nothing is measured to find room for labels.
    grid: { ...insets, bottom: chart.showsSteps === true ? 24 : 8, outerBoundsMode: 'none' },
    tooltip: { trigger: 'axis', showContent: false },
    axisPointer: axisPointer(chart, place),
    dataZoom: [{ type: 'inside', filterMode: 'none', zoomOnMouseWheel: true, moveOnMouseMove: 'shift' }],
    ...axes(chart, lastPlace, place),
    series: [
      {
        type: 'line',
        id: 'line',
        data: line(drawn, drawn.value),
        symbol: length === 1 ? 'circle' : 'none',
        symbolSize: 5,
        itemStyle: { color },
        lineStyle: { width: isSmoothed ? 1.75 : 1.25, color },
        ...(chart.isFilled === true && { areaStyle: { color: withAlpha(color, 0.14) } }),
        z: 4,
        markArea: {
          silent: true,
          itemStyle: { color: withAlpha(token('c8'), 0.05) },
          data: [
            ...(newest < lastPlace ? [[{ xAxis: newest }, { xAxis: lastPlace }]] : []),
            ...(chart.shaded ?? []).map(({ from, to }) => [
              { xAxis: from, itemStyle: { color: withAlpha(token('warn'), 0.3) } },
              { xAxis: to },
            ]),
          ],
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
      ...band(drawn, color, chart.isLog === true),
      // Each value as it came, under the smoothed line: smoothing is drawn over the values, never instead of them.
      ...(isSmoothed && !drawn.hasRange ? [each(drawn, color)] : []),
      ...planned(chart, color),
      ...points(chart, sight.from * lastPlace, sight.to * lastPlace),
      ...gaps(drawn),
    ],
  };
}

function inUnits(size: number | undefined, drawn: DrawnColumns): DrawnColumns {
  if (size === undefined) return drawn;
  const divide = (values: number[]) => values.map((value) => value / size);
  const { value, minimum, maximum } = drawn;
  return { ...drawn, value: divide(value), minimum: divide(minimum), maximum: divide(maximum) };
}

function axisPointer(chart: MetricChart, place: (x: number) => string) {
  return {
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
  };
}

function axes(chart: MetricChart, lastPlace: number, place: (x: number) => string) {
  const label = { color: token('tx-3'), fontSize: 11, fontFamily: token('font-ui') };
  const bare = { axisLine: { show: false }, axisTick: { show: false } };
  return {
    xAxis: {
      ...bare,
      type: 'value',
      min: 0,
      max: lastPlace,
      // No axis of a run has halves: steps, tokens, milliseconds, operations.
      minInterval: 1,
      splitLine: { show: false },
      axisLabel: {
        ...label,
        show: chart.showsSteps === true,
        formatter: place,
        hideOverlap: true,
        // The last one ends where the chart does.
        alignMaxLabel: 'right',
      },
    },
    yAxis: {
      ...bare,
      type: chart.isLog === true ? 'log' : 'value',
      scale: chart.from === 'data',
      splitNumber: chart.isSmall === true ? 2 : 4,
      ...(chart.max !== undefined && { max: chart.max, interval: chart.max / 2 }),
      axisPointer: { show: false },
      splitLine: { lineStyle: { color: token('line'), width: 1 } },
      axisLabel: { ...label, formatter: chart.axisFormat ?? chart.format },
    },
  };
}

/** `[x, y]` of a line; a gap where a value is no number, or where one of those merged was none. */
function line({ x, numNonFinite }: DrawnColumns, values: ArrayLike<number>): [number, number | null][] {
  return x.map((place, i) => {
    const value = values[i] ?? Number.NaN;
    // A smoothed value goes on through what is no number; the line does not.
    return [place, Number.isFinite(value) && numNonFinite[i] === 0 ? value : null];
  });
}

function each(drawn: DrawnColumns, color: string) {
  return {
    type: 'line' as const,
    id: 'each',
    silent: true,
    symbol: 'none',
    lineStyle: { width: 1, color, opacity: 0.4 },
    // Without a range no point is merged: minimum and maximum are the value.
    data: line(drawn, drawn.minimum),
  };
}

/** One polygon over all columns: cheaper than two stacked areas, and right on a log axis too. */
function band({ hasRange, x, minimum, maximum }: DrawnColumns, color: string, isLog: boolean) {
  if (!hasRange) return [];
  const usable = x.flatMap((place, i) => {
    const [low, high] = [minimum[i] ?? Number.NaN, maximum[i] ?? Number.NaN];
    return Number.isFinite(low) && Number.isFinite(high) && (!isLog || low > 0) ? [{ place, low, high }] : [];
  });
  const lowest = usable.reduce((least, { low }) => Math.min(least, low), Infinity);
  const highest = usable.reduce((most, { high }) => Math.max(most, high), -Infinity);
  return [
    {
      type: 'custom' as const,
      id: 'band',
      silent: true,
      clip: true,
      z: 2,
      // One item, whose values tell the axis the extremes; it draws the whole band.
      encode: { x: 0, y: [1, 2] },
      data: usable.length === 0 ? [] : [[usable[0]?.place, lowest, highest]],
      renderItem: (_params: unknown, api: { coord: (point: number[]) => number[] }) => ({
        type: 'polygon',
        shape: {
          points: [
            ...usable.map(({ place, high }) => api.coord([place, high])),
            ...usable.map(({ place, low }) => api.coord([place, low])).reverse(),
          ],
        },
        // The line around it keeps a spike visible that is narrower than a pixel.
        style: { fill: color, stroke: color, lineWidth: 1, lineJoin: 'bevel', opacity: 0.3 },
      }),
    },
  ];
}

function planned(chart: MetricChart, color: string) {
  if (chart.planned === undefined || chart.planned.length === 0) return [];
  return [
    {
      type: 'line' as const,
      id: 'planned',
      silent: true,
      symbol: 'none',
      lineStyle: { width: 1.25, color, type: [2, 4] as number[], opacity: 0.8 },
      data: chart.planned.map(({ x, value }) => [x, value]),
    },
  ];
}

function points(chart: MetricChart, from: number, to: number) {
  if (chart.points === undefined) return [];
  return [
    {
      type: 'scatter' as const,
      id: 'points',
      data: chart.points
        .filter(({ x }) => x >= from && x <= to)
        .filter(({ value }) => Number.isFinite(value) && (chart.isLog !== true || value > 0))
        .map(({ x, value, isBest }) => ({
          value: [x, value],
          ...(isBest === true && { symbol: 'diamond', symbolSize: 11 }),
        })),
      symbolSize: 7,
      itemStyle: { color: token('c2'), borderColor: token('bg-1'), borderWidth: 1.5 },
      z: 6,
    },
  ];
}

/** Where values are no numbers: a dashed line through the chart with a cross on top. */
function gaps({ x, numNonFinite }: DrawnColumns) {
  const places = x.filter((_, i) => (numNonFinite[i] ?? 0) > 0);
  if (places.length === 0) return [];
  const color = token('bad');
  return [
    {
      type: 'line' as const,
      id: 'gaps',
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
