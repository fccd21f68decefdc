import type { RunProfile } from '../../../../main/contract/profile.ts';
import type { ChartOption } from '../../../charts/echarts.ts';
import { token, withAlpha } from '../../../charts/tokens.ts';
import { decimal } from '../../../format.ts';
import { colorOf } from './operations.ts';

interface Block {
  name: string;
  label: string;
  color: string;
  faint: boolean;
  start: number;
  end: number;
  lane: number;
}

const lanes = ['Layers', 'Operations'];

/** Layers as blocks of operations in a row; a layer's kind shows in its colour. */
export function timelineBlocks({ timeline }: RunProfile): Block[] {
  const withAttention = new Set(
    timeline.filter(({ operation }) => operation.startsWith('attention_')).map(({ layer }) => layer),
  );
  const blocks: Block[] = [];
  for (const { phase, layer, startMs, ms } of timeline) {
    const side = phase === 'forward' ? 'forward' : phase === 'optimizer' ? 'update' : 'backward';
    const name =
      layer >= 0 ? `layer ${String(layer)}, ${side}` : side === 'update' ? 'update' : `head, ${side}`;
    const last = blocks.at(-1);
    if (last?.name === name) last.end = Math.max(last.end, startMs + ms);
    else
      blocks.push({
        name,
        label: layer >= 0 ? String(layer) : side === 'update' ? 'update' : 'head',
        color: layer < 0 ? (side === 'update' ? 'c7' : 'c1') : withAttention.has(layer) ? 'c2' : 'c3',
        faint: true,
        start: startMs,
        end: startMs + ms,
        lane: 0,
      });
  }
  const operations = timeline.map(({ operation, phase, layer, startMs, ms }) => ({
    name: `${operation}${phase === 'recompute' ? ' (again)' : ''}${layer >= 0 ? `, layer ${String(layer)}` : ''}`,
    label: '',
    color: colorOf(operation),
    faint: false,
    start: startMs,
    end: startMs + ms,
    lane: 1,
  }));
  return [...blocks, ...operations];
}

/** One step in time: layers above, operations below; wheel zooms, drag moves. */
export function timelineOption(profile: RunProfile): ChartOption {
  const blocks = timelineBlocks(profile);
  const end = Math.max(...blocks.map((block) => block.end), 1e-6);
  const label = { color: token('tx-3'), fontSize: 11, fontFamily: token('font-ui') };
  return {
    animation: false,
    grid: { left: 96, right: 16, top: 8, bottom: 24 },
    tooltip: {
      backgroundColor: token('pop'),
      borderColor: token('line-2'),
      textStyle: { color: token('tx-1'), fontSize: 12, fontFamily: token('font-ui') },
      formatter: ({ dataIndex }: { dataIndex: number }) => {
        const block = blocks[dataIndex];
        return block === undefined
          ? ''
          : `${block.name}<br><b>${decimal(block.end - block.start, 3)} ms</b> at ${decimal(block.start, 2)} ms`;
      },
    },
    dataZoom: [{ type: 'inside', filterMode: 'weakFilter' }],
    xAxis: {
      type: 'value',
      min: 0,
      max: end,
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { lineStyle: { color: token('line') } },
      axisLabel: {
        ...label,
        // The end of the step is no round number, and would stand on the last one.
        showMaxLabel: false,
        formatter: (value: number) => `${decimal(value, value % 1 === 0 ? 0 : 2)} ms`,
      },
    },
    yAxis: {
      type: 'category',
      inverse: true,
      data: lanes,
      axisLine: { show: false },
      axisTick: { show: false },
      axisLabel: { ...label, align: 'left', margin: 80 },
    },
    series: [
      {
        type: 'custom',
        clip: true,
        encode: { x: [1, 2], y: 0 },
        data: blocks.map((block) => [block.lane, block.start, block.end]),
        renderItem: (params: { dataIndex: number }, api: CustomApi) => {
          const block = blocks[params.dataIndex];
          if (block === undefined) return undefined;
          const [from, y] = api.coord([block.start, block.lane]);
          const [to] = api.coord([block.end, block.lane]);
          const height = api.size([0, 1])[1] * (block.lane === 0 ? 0.5 : 0.84);
          const width = Math.max(0.5, to - from - (to - from > 3 ? 1 : 0));
          const color = token(block.color);
          return {
            type: 'rect',
            shape: { x: from, y: y - height / 2, width, height },
            style: { fill: block.faint ? withAlpha(color, 0.45) : color },
            ...(block.label !== '' &&
              width > 7 * block.label.length + 6 && {
                textContent: { style: { text: block.label, fill: token('tx-1'), fontSize: 11 } },
                textConfig: { position: 'inside' },
              }),
          };
        },
      },
    ],
  };
}

interface CustomApi {
  coord: (point: number[]) => [number, number];
  size: (size: number[]) => [number, number];
}
