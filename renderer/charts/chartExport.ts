import { SVGRenderer } from 'echarts/renderers';
import { echarts, type ChartOption } from './echarts.ts';
import { token } from './tokens.ts';

/** The numbers behind a chart. */
export interface ChartTable {
  columns: string[];
  rows: (string | number | null)[][];
}

export const chartFormats = ['png', 'svg', 'csv', 'json'] as const;
export type ChartFormat = (typeof chartFormats)[number];

echarts.use([SVGRenderer]);
const width = 1200;
const height = 520;

/** A chart as a file's content, drawn anew in the theme that is shown. */
export async function chartFile(
  format: ChartFormat,
  option: () => ChartOption,
  table: () => ChartTable,
): Promise<string | Uint8Array<ArrayBuffer>> {
  if (format === 'csv') return toCsv(table());
  if (format === 'json') return toJson(table());
  return format === 'svg' ? drawSvg(option()) : drawPng(option());
}

/** RFC 4180; a cell that a spreadsheet would take for a formula gets an apostrophe before it. */
export function toCsv({ columns, rows }: ChartTable): string {
  const cell = (value: string | number | null) => {
    if (typeof value === 'number') return Number.isFinite(value) ? String(value) : '';
    const text = value === null ? '' : /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

/** `[{column: value, …}, …]`; what is no number (a gap) is null. */
export function toJson({ columns, rows }: ChartTable): string {
  const objects = rows.map((row) =>
    Object.fromEntries(columns.map((column, i) => [column, finite(row[i] ?? null)])),
  );
  return `${JSON.stringify(objects, null, 1)}\n`;
}

const finite = (value: string | number | null) =>
  typeof value === 'number' && !Number.isFinite(value) ? null : value;

function drawSvg(option: ChartOption): string {
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width, height });
  chart.setOption({ ...option, backgroundColor: token('bg-1'), animation: false });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return svg;
}

async function drawPng(option: ChartOption): Promise<Uint8Array<ArrayBuffer>> {
  const chart = echarts.init(document.createElement('div'), null, { renderer: 'canvas', width, height });
  chart.setOption({ ...option, animation: false });
  const url = chart.getDataURL({ type: 'png', pixelRatio: 2, backgroundColor: token('bg-1') });
  chart.dispose();
  const binary = atob(url.slice(url.indexOf(',') + 1));
  return Promise.resolve(Uint8Array.from(binary, (character) => character.charCodeAt(0)));
}
