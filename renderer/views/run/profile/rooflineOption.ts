import type { ProfileRow, RunProfile } from '../../../../main/contract/profile.ts';
import type { ChartOption } from '../../../charts/echarts.ts';
import { token, withAlpha } from '../../../charts/tokens.ts';
import { decimal } from '../../../format.ts';
import { colorOf, groupOf, nameOf } from './operations.ts';
import { placeLabels } from './placeLabels.ts';

type Roof = NonNullable<RunProfile['roof']>;

/** 1.2 TFLOP/s, 47 GFLOP/s */
export function rate(perSecond: number, unit: string): string {
  const [divisor, prefix] =
    perSecond >= 1e12 ? [1e12, 'T'] : perSecond >= 1e9 ? [1e9, 'G'] : perSecond >= 1e6 ? [1e6, 'M'] : [1, ''];
  const scaled = perSecond / divisor;
  return `${decimal(scaled, scaled < 10 ? 1 : 0)} ${prefix}${unit}`;
}

/** Intensity in FLOP per byte; operations without matrix work count one operation per byte's eighth, at the left. */
export function roofPoint(row: ProfileRow, leftmost: number): { x: number; y: number } {
  const seconds = row.totalMs / 1000;
  const x = row.flops > 0 && row.bytes > 0 ? row.flops / row.bytes : leftmost;
  // A row without matrix work is placed by the bytes that it moves: on the memory's slope it is at its limit.
  const y = row.flops > 0 ? row.flops / seconds : (row.bytes / seconds) * x;
  return { x, y };
}

const insets = { left: 72, right: 24, top: 16, bottom: 36 };
/** A picture in a file, see `chartFile`. */
const pictureSize = { widthPx: 1200, heightPx: 520 };

/**
 * Achieved rate against intensity, both logarithmic, under the two limits measured on this machine; area is time.
 * @param size of the chart, by which names are kept off each other
 */
export function rooflineOption(
  rows: ProfileRow[],
  roof: Roof,
  size: { widthPx: number; heightPx: number } = pictureSize,
): ChartOption {
  const leftmost = 0.25;
  const knee = roof.flopsPerSecond / roof.bytesPerSecond;
  const shown = rows.filter(({ totalMs, flops, bytes }) => totalMs > 0 && flops + bytes > 0);
  const points = shown.map((row) => ({ row, ...roofPoint(row, leftmost) }));
  const right = 10 ** Math.ceil(Math.log10(Math.max(knee * 4, ...points.map(({ x }) => x * 1.5))));
  const bottom =
    10 ** Math.floor(Math.log10(Math.min(...points.map(({ y }) => y), roof.bytesPerSecond * 0.1)));
  const longest = Math.max(...shown.map(({ totalMs }) => totalMs), 1e-9);
  // One name for each kind of operation, where most is to be saved: points of a kind lie close together.
  const named = new Set(
    [...shown]
      .sort((a, b) => (b.couldSaveMs ?? 0) - (a.couldSaveMs ?? 0))
      .filter(
        (row, i, all) => all.findIndex((each) => groupOf(each.operation) === groupOf(row.operation)) === i,
      ),
  );
  const top = 10 ** Math.ceil(Math.log10(roof.flopsPerSecond * 1.2));
  const share = (value: number, low: number, high: number) =>
    Math.log10(value / low) / Math.log10(high / low);
  const plotWidth = Math.max(1, size.widthPx - insets.left - insets.right);
  const plotHeight = Math.max(1, size.heightPx - insets.top - insets.bottom);
  const sizeOf = (row: ProfileRow) => 6 + 26 * Math.sqrt(row.totalMs / longest);
  const places = placeLabels(
    points.map(({ row, x, y }) => ({
      x: share(x, 0.1, right) * plotWidth,
      y: (1 - share(y, bottom, top)) * plotHeight,
      radius: sizeOf(row) / 2,
      ...(named.has(row) && { text: nameOf(row) }),
    })),
    { width: plotWidth, height: plotHeight },
  );
  const label = { color: token('tx-3'), fontSize: 11, fontFamily: token('font-ui') };
  const power = (value: number) => (value >= 1000 ? decimal(value, 0) : String(Number(value.toPrecision(2))));
  return {
    animation: false,
    grid: { ...insets, outerBoundsMode: 'none' },
    tooltip: {
      backgroundColor: token('pop'),
      borderColor: token('line-2'),
      textStyle: { color: token('tx-1'), fontSize: 12, fontFamily: token('font-ui') },
      formatter: ({ data }: { data: { name?: string; tip?: string } }) =>
        data.name === undefined ? '' : `${data.name}<br>${data.tip ?? ''}`,
    },
    xAxis: {
      type: 'log',
      min: 0.1,
      max: right,
      name: 'FLOP per byte; left: no matrix work',
      nameLocation: 'middle',
      nameGap: 22,
      nameTextStyle: label,
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { lineStyle: { color: token('line') } },
      axisLabel: { ...label, formatter: power },
    },
    yAxis: {
      type: 'log',
      min: bottom,
      max: top,
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { lineStyle: { color: token('line') } },
      axisLabel: { ...label, formatter: (value: number) => rate(value, 'F/s') },
    },
    series: [
      {
        type: 'line',
        silent: true,
        symbol: 'none',
        lineStyle: { color: token('tx-3'), width: 1.25 },
        data: [
          [0.1, 0.1 * roof.bytesPerSecond],
          [knee, roof.flopsPerSecond],
          [right, roof.flopsPerSecond],
        ],
      },
      {
        type: 'scatter',
        data: points.map(({ row, x, y }, i) => ({
          value: [x, y],
          name: nameOf(row),
          tip: `${decimal(row.totalMs, 2)} ms · ${row.percentOfRoof === undefined ? 'n/a' : `${decimal(row.percentOfRoof, 0)} %`} of its limit`,
          symbolSize: sizeOf(row),
          itemStyle: {
            color: withAlpha(token(colorOf(row.operation)), 0.8),
            borderColor: token('bg-1'),
            borderWidth: 1,
          },
          label: {
            show: places[i] !== undefined,
            formatter: '{b}',
            position: places[i] ?? 'right',
            color: token('tx-2'),
            fontSize: 11,
          },
        })),
        z: 3,
      },
    ],
  };
}

export function rooflineTable(rows: ProfileRow[]) {
  return {
    columns: ['operation', 'flopPerByte', 'flopsPerSecond', 'bytesPerSecond', 'totalMs', 'percentOfRoof'],
    rows: rows.map((row) => [
      nameOf(row),
      row.bytes > 0 ? row.flops / row.bytes : null,
      (row.flops / row.totalMs) * 1000,
      (row.bytes / row.totalMs) * 1000,
      row.totalMs,
      row.percentOfRoof ?? null,
    ]),
  };
}
