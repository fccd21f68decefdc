import type { WhyFaster } from '../../../main/contract/runs.ts';
import type { ChartTable } from '../../charts/chartExport.ts';
import type { ChartOption } from '../../charts/echarts.ts';
import { token } from '../../charts/tokens.ts';
import { decimal } from '../../format.ts';

type Kind = WhyFaster['parts'][number]['kind'];
export interface Bar {
  name: string;
  us: number;
  color: string;
  /** The names of what a bar stands for where it stands for several. */
  of: string[];
}

/** Kinds as the chart's legend groups them, each with its colour token. */
export const groups: { label: string; color: string; kinds: Kind[] }[] = [
  { label: 'padding', color: 'c5', kinds: ['padding'] },
  { label: 'updates and head rows', color: 'c4', kinds: ['updates', 'head'] },
  { label: 'recomputation', color: 'c2', kinds: ['recompute'] },
  { label: 'kernels', color: 'c3', kinds: ['kernel'] },
  { label: 'gaps', color: 'c7', kinds: ['gaps'] },
  { label: 'data, host', color: 'c6', kinds: ['data', 'host', 'beside'] },
];
const unexplained = 'c8';
const mostBars = 9;

const colorOf = (kind: Kind) => groups.find(({ kinds }) => kinds.includes(kind))?.color ?? unexplained;

/** At most nine parts in the order of the account; smaller ones of a kind are drawn together, none is left out. */
export function waterfallBars({ parts, unexplainedUs }: WhyFaster): Bar[] {
  const large = new Set(
    [...parts].sort((a, b) => Math.abs(b.us) - Math.abs(a.us)).slice(0, mostBars - groups.length + 2),
  );
  const bars: Bar[] = [];
  for (const { label, color, kinds } of groups) {
    const mine = parts.filter(({ kind }) => kinds.includes(kind));
    bars.push(
      ...mine
        .filter((part) => large.has(part))
        .map(({ name, us, kind }) => ({ name, us, color: colorOf(kind), of: [name] })),
    );
    const small = mine.filter((part) => !large.has(part));
    if (small.length === 0) continue;
    const isAll = small.length === mine.length;
    bars.push({
      name: small.length === 1 ? (small[0]?.name ?? '') : isAll ? label : `other ${label}`,
      us: small.reduce((sum, { us }) => sum + us, 0),
      color,
      of: small.map(({ name }) => name),
    });
  }
  bars.push({ name: 'unexplained', us: unexplainedUs, color: unexplained, of: [] });
  return bars;
}

/** What each group of parts gives, for the table beside the chart. */
export function groupSums({
  parts,
  unexplainedUs,
}: WhyFaster): { label: string; color: string; us: number }[] {
  const sums = groups.map(({ label, color, kinds }) => ({
    label,
    color,
    us: parts.filter(({ kind }) => kinds.includes(kind)).reduce((sum, { us }) => sum + us, 0),
  }));
  return [
    ...sums.filter(({ us }) => us !== 0),
    { label: 'unexplained', color: unexplained, us: unexplainedUs },
  ];
}

export function waterfallTable(why: WhyFaster): ChartTable {
  return {
    columns: ['part', 'kind', 'usPerRealToken'],
    rows: [
      [why.from.name, 'run', why.fromUsPerToken],
      ...why.parts.map(({ name, kind, us }) => [name, kind, us]),
      ['unexplained', 'unexplained', why.unexplainedUs],
      [why.to.name, 'run', why.toUsPerToken],
    ],
  };
}

/** Names of bars nearer than this stand slanted: side by side they would run into one another. */
const leastUprightPx = 68;
const sides = { left: 56, right: 16 };

/** From the first run's time per real token, part by part, to the second's, on so many pixels. */
export function waterfallOption(
  why: WhyFaster,
  fromColor: string,
  toColor: string,
  widthPx: number,
): ChartOption {
  const bars = waterfallBars(why);
  const barPx = widthPx / (bars.length + 2);
  const isSlanted = barPx < leastUprightPx;
  // Labels do not touch.
  const labelPx = Math.min(84, (widthPx - sides.left - sides.right) / (bars.length + 2) - 2);
  const labelled = (name: string) => (isSlanted ? name : barLabel(name, labelPx));
  const digits = why.fromUsPerToken >= 100 ? 1 : why.fromUsPerToken >= 10 ? 2 : 3;
  const label = { color: token('tx-3'), fontSize: 11, fontFamily: token('font-ui') };
  let at = why.fromUsPerToken;
  const spans = bars.map(({ us }) => {
    const from = at;
    at += us;
    return [from, at] as const;
  });
  const values = [
    { low: 0, high: why.fromUsPerToken, color: fromColor, text: decimal(why.fromUsPerToken, digits) },
    ...bars.map(({ us, color }, i) => ({
      low: Math.min(...(spans[i] ?? [0, 0])),
      high: Math.max(...(spans[i] ?? [0, 0])),
      color,
      text: signed(us, digits),
    })),
    { low: 0, high: why.toUsPerToken, color: toColor, text: decimal(why.toUsPerToken, digits) },
  ];
  const joints = [why.fromUsPerToken, ...spans.map(([, to]) => to)];
  return {
    animation: false,
    grid: { ...sides, top: 28, bottom: isSlanted ? 72 : 56 },
    tooltip: {
      trigger: 'item',
      backgroundColor: token('pop'),
      borderColor: token('line-2'),
      textStyle: { color: token('tx-1'), fontSize: 12, fontFamily: token('font-ui') },
      formatter: ({ dataIndex }: { dataIndex: number }) => tip(why, bars[dataIndex - 1], dataIndex, digits),
    },
    xAxis: {
      type: 'category',
      data: [why.from.name, ...bars.map(({ name }) => name), why.to.name],
      axisLine: { lineStyle: { color: token('line-2') } },
      axisTick: { show: false },
      axisLabel: {
        ...label,
        interval: 0,
        ...(isSlanted
          ? { rotate: 35, width: 104, overflow: 'truncate' as const }
          : { width: labelPx, overflow: 'break' as const, lineHeight: 13 }),
        // Operations in words; the runs at either end are named as they are.
        formatter: (name: string, place: number) =>
          labelled(place === 0 || place > bars.length ? name : name.replaceAll('_', ' ')),
      },
    },
    yAxis: {
      type: 'value',
      min: 0,
      splitNumber: 4,
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { lineStyle: { color: token('line') } },
      axisLabel: label,
    },
    series: [
      {
        type: 'custom',
        encode: { x: 0, y: [1, 2] },
        data: values.map(({ low, high }, i) => [i, low, high]),
        renderItem: (_params: unknown, api: CustomApi) => {
          const index = api.value(0);
          const bar = values[index];
          const [x, top] = api.coord([index, api.value(2)]);
          const [, bottom] = api.coord([index, api.value(1)]);
          const width = Math.min(64, api.size([1, 0])[0] * 0.62);
          const joint = joints[index];
          const next = joint === undefined ? undefined : api.coord([index + 1, joint]);
          return {
            type: 'group',
            children: [
              {
                type: 'rect',
                shape: { x: x - width / 2, y: top, width, height: Math.max(1.5, bottom - top) },
                style: { fill: token(bar?.color ?? unexplained) },
              },
              {
                type: 'text',
                style: {
                  text: bar?.text ?? '',
                  x,
                  y: top - 5,
                  align: 'center',
                  verticalAlign: 'bottom',
                  fill: token('tx-1'),
                  font: `600 11px ${token('font-ui')}`,
                },
              },
              ...(next === undefined
                ? []
                : [
                    {
                      type: 'line',
                      shape: { x1: x + width / 2, y1: next[1], x2: next[0] - width / 2, y2: next[1] },
                      style: { stroke: token('tx-3'), lineDash: [2, 2], lineWidth: 1 },
                    },
                  ]),
            ],
          };
        },
      },
    ],
  };
}

/** What rounds to nothing has no sign. */
function signed(us: number, digits: number): string {
  const text = decimal(us, digits);
  return us > 0 && /[1-9]/.test(text) ? `+${text}` : text;
}

/** At 11 pixels, of the interface's letters. */
const letterPx = 5.7;

/** Lines break between words; a word that is longer than a line is cut, and told whole when pointed at. */
function barLabel(text: string, widthPx: number): string {
  const lineLetters = Math.floor(widthPx / letterPx);
  return text
    .split(' ')
    .map((word) => (word.length > lineLetters ? `${word.slice(0, lineLetters - 2)}…` : word))
    .join(' ');
}

interface CustomApi {
  value: (dimension: number) => number;
  coord: (point: number[]) => [number, number];
  size: (size: number[]) => [number, number];
}

function tip(why: WhyFaster, bar: Bar | undefined, index: number, digits: number): string {
  const text = (value: string) => value.replace(/[&<>"]/g, (c) => `&#${String(c.charCodeAt(0))};`);
  if (bar === undefined) {
    const [name, us] = index === 0 ? [why.from.name, why.fromUsPerToken] : [why.to.name, why.toUsPerToken];
    return `${text(name)}<br><b>${decimal(us, digits)} µs</b> per real token`;
  }
  const gap = why.toUsPerToken - why.fromUsPerToken;
  const share = gap === 0 ? '' : ` · ${decimal((bar.us / gap) * 100, 1)} % of the gap`;
  const of = bar.of.length > 1 ? `<br>${bar.of.slice(0, 12).map(text).join('<br>')}` : '';
  return `${text(bar.name)}<br><b>${signed(bar.us, digits)} µs</b>${share}${of}`;
}
