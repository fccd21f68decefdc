import { throttleReasons, type TelemetrySeries } from '../../../../main/contract/telemetry.ts';
import { binaryAxis, type BinaryAxis } from '../../../charts/binaryAxis.ts';
import type { ChartTable } from '../../../charts/chartExport.ts';
import type { ChartOption } from '../../../charts/echarts.ts';
import { token, withAlpha } from '../../../charts/tokens.ts';
import { bytes, decimal, duration, integer } from '../../../format.ts';

interface Panel {
  field: string;
  title: string;
  unit: string;
  color: string;
  /** Upper end of the axis where it is fixed. */
  max?: number;
  write: (value: number) => string;
}

const rate = (value: number) => `${bytes(value)}/s`;
/** What is drawn of a source, in this order; a field that it never said is named, not drawn. */
export const gpuPanels: Panel[] = [
  { field: 'utilization', title: 'Utilisation', unit: '%', color: 'c1', max: 100, write: integer },
  { field: 'memoryBytes', title: 'Memory', unit: '', color: 'c3', write: bytes },
  { field: 'powerW', title: 'Power', unit: 'W', color: 'c2', write: integer },
  { field: 'temperatureC', title: 'Temperature', unit: '°C', color: 'c5', write: integer },
  { field: 'smClockMHz', title: 'SM clock', unit: 'MHz; shaded: throttled', color: 'c7', write: integer },
  { field: 'memoryClockMHz', title: 'Memory clock', unit: 'MHz', color: 'c7', write: integer },
  {
    field: 'energyJ',
    title: 'Energy',
    unit: 'kJ since driver start',
    color: 'c2',
    write: (value) => decimal(value / 1000, 0),
  },
  { field: 'pcieReceivedBytesPerSecond', title: 'PCIe received', unit: '', color: 'c6', write: rate },
  { field: 'pcieSentBytesPerSecond', title: 'PCIe sent', unit: '', color: 'c6', write: rate },
  { field: 'eccUncorrected', title: 'ECC errors', unit: 'not corrected', color: 'c5', write: integer },
];
export const hostPanels: Panel[] = [
  {
    field: 'cpuUtilization',
    title: 'Processor',
    unit: '% of all cores',
    color: 'c1',
    max: 1,
    write: (value) => integer(value * 100),
  },
  { field: 'memoryBytes', title: 'Memory', unit: '', color: 'c3', write: bytes },
  { field: 'diskFreeBytes', title: 'Disk free', unit: '', color: 'c6', write: bytes },
];

/** A field over the time since the run's start: band from minimum to maximum, mean as a line. */
export function telemetryOption(
  panel: Panel,
  series: TelemetrySeries,
  startMs: number,
  throttle?: TelemetrySeries,
): ChartOption {
  const color = token(panel.color);
  const label = { color: token('tx-3'), fontSize: 11, fontFamily: token('font-ui') };
  const isGap = gapFinder(series.atMs);
  const points = (value: (i: number) => number) =>
    Array.from(series.atMs, (at, i): [number, number | null][] => {
      const x = (at - startMs) / 1000;
      // Nobody looked: the machine slept, or nothing trained. A line through it would be made up.
      return isGap(i)
        ? [
            [x, null],
            [x, value(i)],
          ]
        : [[x, value(i)]];
    }).flat();
  /** Of each drawn point: the one that it shows. */
  const shown = Array.from(series.atMs, (_, i) => (isGap(i) ? [i, i] : [i])).flat();
  const low = points((i) => series.minimum[i] ?? Number.NaN);
  const spread = points((i) => (series.maximum[i] ?? 0) - (series.minimum[i] ?? 0));
  const held = throttledSpans(throttle, startMs);
  const binary = panel.write === bytes ? bytesAxis(series) : undefined;
  return {
    animation: false,
    grid: { left: 72, right: 16, top: 8, bottom: 22 },
    tooltip: {
      trigger: 'axis',
      backgroundColor: token('pop'),
      borderColor: token('line-2'),
      textStyle: { color: token('tx-1'), fontSize: 12, fontFamily: token('font-ui') },
      formatter: (hits: { dataIndex: number }[]) => {
        const i = shown[hits[0]?.dataIndex ?? 0] ?? 0;
        const [minimum, maximum, mean] = [series.minimum[i], series.maximum[i], series.mean[i]];
        if (mean === undefined) return '';
        const range =
          minimum === maximum ? '' : ` (${panel.write(minimum ?? mean)} to ${panel.write(maximum ?? mean)})`;
        return `${duration((series.atMs[i] ?? 0) - startMs)}<br><b>${panel.write(mean)}</b>${range}`;
      },
    },
    dataZoom: [{ type: 'inside', filterMode: 'none' }],
    xAxis: {
      type: 'value',
      min: 'dataMin',
      max: 'dataMax',
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { show: false },
      axisLabel: { ...label, formatter: (value: number) => duration(value * 1000), hideOverlap: true },
    },
    yAxis: {
      type: 'value',
      ...(panel.max === undefined ? { scale: true } : { min: 0, max: panel.max, interval: panel.max / 4 }),
      ...(binary !== undefined && { min: binary.min, max: binary.max, interval: binary.interval }),
      splitNumber: 3,
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { lineStyle: { color: token('line') } },
      axisLabel: { ...label, formatter: binary?.write ?? panel.write },
    },
    series: [
      { type: 'line', stack: 'band', silent: true, symbol: 'none', lineStyle: { opacity: 0 }, data: low },
      {
        ...{ type: 'line', stack: 'band', silent: true, symbol: 'none', lineStyle: { opacity: 0 } },
        areaStyle: { color: withAlpha(color, 0.25) },
        data: spread,
      },
      {
        type: 'line',
        symbol: 'none',
        lineStyle: { width: 1.25, color },
        itemStyle: { color },
        data: points((i) => series.mean[i] ?? Number.NaN),
        // A wash over the spans in which something held the clocks down, with the reason.
        markArea: {
          silent: true,
          itemStyle: { color: withAlpha(token('warn'), 0.16) },
          label: { color: token('warn'), fontSize: 11, position: 'insideTop' },
          data: held.map(({ from, to, why }) => [{ xAxis: from, name: why }, { xAxis: to }]),
        },
      },
    ],
  };
}

/** Whether so much time lies before a point that nothing was recorded meanwhile. */
function gapFinder(atMs: Float64Array): (i: number) => boolean {
  const usual = Array.from(atMs.subarray(1), (at, i) => at - (atMs[i] ?? 0)).sort((a, b) => a - b);
  const longest = Math.max(5000, 8 * (usual[usual.length >> 1] ?? 0));
  return (i) => i > 0 && (atMs[i] ?? 0) - (atMs[i - 1] ?? 0) > longest;
}

export const sourceTitle = (source: string) =>
  source === 'host' ? 'Computer' : source.replace('gpu', 'GPU ');

function bytesAxis({ minimum, maximum }: TelemetrySeries): BinaryAxis | undefined {
  const lowest = minimum.reduce((least, value) => (value < least ? value : least), Infinity);
  const highest = maximum.reduce((most, value) => (value > most ? value : most), -Infinity);
  return lowest <= highest ? binaryAxis(lowest, highest) : undefined;
}

/** Points in a row with the same reasons as one span, in seconds since the run's start. */
function throttledSpans(throttle: TelemetrySeries | undefined, startMs: number) {
  const spans: { from: number; to: number; why: string }[] = [];
  if (throttle === undefined) return spans;
  let before = '';
  for (let i = 0; i < throttle.atMs.length; i += 1) {
    const x = ((throttle.atMs[i] ?? 0) - startMs) / 1000;
    const why = throttleReasons(throttle.maximum[i] ?? 0).join(', ');
    const last = spans.at(-1);
    if (why !== '' && why === before && last !== undefined) last.to = x;
    else if (why !== '') spans.push({ from: x, to: x, why });
    before = why;
  }
  return spans;
}

export function telemetryTable(series: TelemetrySeries): ChartTable {
  return {
    columns: ['atMs', 'minimum', 'maximum', 'mean'],
    rows: Array.from(series.atMs, (at, i) => [
      Math.round(at),
      series.minimum[i] ?? null,
      series.maximum[i] ?? null,
      series.mean[i] ?? null,
    ]),
  };
}
