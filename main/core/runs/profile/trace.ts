import type { RunProfile } from '../../../contract/profile.ts';

/** Rows of the trace: what computes, and the layers that it computes for. */
const layersThread = 1;
const operationsThread = 2;

/**
 * The timeline in the Trace Event Format (JSON object form), which chrome://tracing and Perfetto open. Times in
 * microseconds. Source: Trace Event Format, Google, "complete events" (ph X) and metadata (ph M).
 */
export function chromeTrace(profile: RunProfile, name: string): string {
  const device = profile.device.length > 0 ? profile.backend : 'CPU';
  const label = (tid: number, text: string) => ({
    ...{ name: 'thread_name', ph: 'M', pid: 1, tid },
    args: { name: text },
  });
  const operations = profile.timeline.map(({ operation, phase, layer, startMs, ms }) => ({
    ...{ name: operation, cat: phase, ph: 'X', pid: 1, tid: operationsThread },
    ts: startMs * 1000,
    dur: ms * 1000,
    args: { phase, ...(layer >= 0 && { layer }) },
  }));
  const layers = layerBlocks(profile).map(({ name: block, startMs, endMs }) => ({
    ...{ name: block, ph: 'X', pid: 1, tid: layersThread },
    ts: startMs * 1000,
    dur: (endMs - startMs) * 1000,
  }));
  const process = { name: 'process_name', ph: 'M', pid: 1, args: { name: `${name}, ${device}` } };
  return JSON.stringify({
    displayTimeUnit: 'ms',
    otherData: { run: name, step: profile.step },
    traceEvents: [
      process,
      label(layersThread, 'layers'),
      label(operationsThread, 'operations'),
      ...layers,
      ...operations,
    ],
  });
}

/** Operations in a row that belong to the same layer and direction. */
function layerBlocks({ timeline }: RunProfile): { name: string; startMs: number; endMs: number }[] {
  const blocks: { name: string; startMs: number; endMs: number }[] = [];
  for (const { layer, phase, startMs, ms } of timeline) {
    const side = phase === 'forward' ? 'forward' : phase === 'optimizer' ? 'update' : 'backward';
    const name =
      layer >= 0 ? `layer ${String(layer)} ${side}` : side === 'update' ? 'update' : `outside ${side}`;
    const last = blocks.at(-1);
    if (last?.name === name) last.endMs = Math.max(last.endMs, startMs + ms);
    else blocks.push({ name, startMs, endMs: startMs + ms });
  }
  return blocks;
}
