import { SVGRenderer } from 'echarts/renderers';
import { echarts, type ChartOption } from './echarts.ts';
import { toCsv, toJson, type ChartTable } from './tableFile.ts';
import { token } from './tokens.ts';

export { toCsv, toJson, type ChartTable };

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
