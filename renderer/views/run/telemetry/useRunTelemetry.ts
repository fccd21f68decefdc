import { onScopeDispose, shallowRef, watch, type Ref } from 'vue';
import type { RunDetail } from '../../../../main/contract/runs.ts';
import type { TelemetrySeries } from '../../../../main/contract/telemetry.ts';
import { client } from '../../../client.ts';
import type { StepTimes } from './onRunAxis.ts';

const refreshMs = 2000;
/** Reading takes longer as a run grows: at most this share of the time is spent on it. */
const readingShare = 0.05;
const maxPoints = 400;

/** What one source said while a run trained, read again as long as it trains. */
export function useRunTelemetry(run: Ref<Pick<RunDetail, 'id' | 'status'>>, source: Ref<string | undefined>) {
  const series = shallowRef<TelemetrySeries[]>([]);
  const sources = shallowRef<string[]>([]);
  const times = shallowRef<StepTimes>({ steps: [], x: [] });
  const error = shallowRef<unknown>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let generation = 0;

  async function read(): Promise<void> {
    const mine = (generation += 1);
    const { id } = run.value;
    const startedMs = performance.now();
    try {
      const [found, wall] = await Promise.all([
        client.call('telemetry:of-run', {
          ...{ id, maxPoints },
          ...(source.value !== undefined && { source: source.value }),
        }),
        client.call('runs:series', { ids: [id], metric: 'loss', maxPoints, axis: 'wall' }),
      ]);
      if (mine !== generation) return;
      sources.value = found.sources;
      times.value = wall.series[0] ?? { steps: [], x: [] };
      series.value = found.series;
      error.value = undefined;
    } catch (reason) {
      if (mine === generation) error.value = reason;
    }
    if (mine !== generation || run.value.status !== 'running') return;
    const tookMs = performance.now() - startedMs;
    timer = setTimeout(() => void read(), Math.max(refreshMs, tookMs / readingShare));
  }
  watch(
    [() => run.value.id, () => run.value.status, source],
    ([id], [before]) => {
      clearTimeout(timer);
      if (id !== before) series.value = [];
      void read();
    },
    { immediate: true },
  );
  onScopeDispose(() => {
    generation += 1;
    clearTimeout(timer);
  });
  return { series, sources, times, error };
}
