import { computed, onScopeDispose, shallowRef, watch, type Ref } from 'vue';
import type { RunDetail, RunMetric, RunStep } from '../../../main/contract/runs.ts';
import { client } from '../../client.ts';
import { useCoreStore } from '../../stores/coreStore.ts';
import { useNoticeStore } from '../../stores/noticeStore.ts';
import { appendStep, emptySeries, type LiveSeries } from './liveSeries.ts';

const metrics: RunMetric[] = ['loss', 'gradNorm', 'learningRate', 'tokensPerSecond', 'milliseconds'];
const maxPoints = 2000;

/** One run as it is now and as it goes on: its record, its series, its events. Follows `id` and the core's restarts. */
export function useRun(id: Ref<string>) {
  const core = useCoreStore();
  const notices = useNoticeStore();
  const run = shallowRef<RunDetail>();
  const series = shallowRef(new Map<RunMetric, LiveSeries>());
  const lastStep = shallowRef<RunStep>();
  const error = shallowRef<unknown>();
  const totals = shallowRef({ realTokens: 0, supervisedTokens: 0, positions: 0 });
  let close: (() => void) | undefined;
  let generation = 0;

  async function load(): Promise<void> {
    const mine = (generation += 1);
    const wanted = id.value;
    try {
      const [shown, ...columns] = await Promise.all([
        client.call('runs:show', { id: wanted }),
        ...metrics.map((metric) => client.call('runs:series', { ids: [wanted], metric, maxPoints })),
      ]);
      if (mine !== generation) return;
      run.value = shown.run;
      series.value = new Map(metrics.map((metric, i) => [metric, columns[i]?.series[0] ?? emptySeries()]));
      error.value = undefined;
    } catch (reason) {
      if (mine === generation) error.value = reason;
    }
  }

  function follow(): void {
    close?.();
    const link = client.subscribe('runs:watch', { id: id.value }, (updates, numDropped) => {
      if (numDropped > 0) void load();
      const steps = updates.flatMap((update) => (update.kind === 'step' ? [update.step] : []));
      if (steps.length > 0) takeSteps(steps);
      for (const update of updates) {
        if (update.kind === 'run' && run.value !== undefined) run.value = { ...run.value, ...update.run };
        if (update.kind === 'event') {
          if (run.value !== undefined)
            run.value = { ...run.value, events: [...run.value.events, update.event] };
          // Evaluations and checkpoints change the record itself.
          void refresh();
        }
      }
    });
    link.done.catch(() => undefined);
    close = () => {
      link.close();
    };
  }

  function takeSteps(steps: RunStep[]): void {
    const next = new Map(series.value);
    let isFull = false;
    for (const metric of metrics) {
      const grown = appendStep(next.get(metric) ?? emptySeries(), metric, steps);
      isFull ||= grown.steps.length > 2 * maxPoints;
      next.set(metric, grown);
    }
    series.value = next;
    lastStep.value = steps.at(-1);
    const sum = (key: 'realTokens' | 'supervisedTokens' | 'positions') =>
      steps.reduce((total, step) => total + step[key], totals.value[key]);
    totals.value = {
      realTokens: sum('realTokens'),
      supervisedTokens: sum('supervisedTokens'),
      positions: sum('positions'),
    };
    // The core merges blocks of steps; extremes stay in the band.
    if (isFull) void load();
  }

  async function refresh(): Promise<void> {
    const wanted = id.value;
    const shown = await client.call('runs:show', { id: wanted }).catch(() => undefined);
    if (shown !== undefined && wanted === id.value) run.value = shown.run;
  }

  async function command(name: 'pause' | 'stop' | 'checkpoint' | 'profile' | 'resume'): Promise<void> {
    try {
      if (name === 'resume') await client.call('runs:resume', { id: id.value });
      else await client.call('runs:command', { id: id.value, command: name });
      await refresh();
    } catch (reason) {
      notices.fail(`${name[0]?.toUpperCase() ?? ''}${name.slice(1)} did not work`, reason);
    }
  }

  watch(
    [id, () => core.epoch],
    ([wanted, epoch]) => {
      if (epoch === 0 || wanted === '') return;
      run.value = undefined;
      lastStep.value = undefined;
      totals.value = { realTokens: 0, supervisedTokens: 0, positions: 0 };
      series.value = new Map();
      // Following first: what happens while the series are read is appended twice at worst, and appendStep drops it.
      follow();
      void load();
    },
    { immediate: true },
  );
  onScopeDispose(() => close?.());

  return {
    run,
    lastStep,
    totals,
    error,
    column: (metric: RunMetric) => computed(() => series.value.get(metric) ?? emptySeries()),
    command,
    refresh,
  };
}
