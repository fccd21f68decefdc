import { computed, onScopeDispose, shallowRef, watch, type Ref } from 'vue';
import {
  runMetrics,
  type CheckpointChoice,
  type RunAxis,
  type RunDetail,
  type RunMetric,
  type RunStep,
} from '../../../main/contract/runs.ts';
import { drawQueue } from '../../charts/drawQueue.ts';
import { client } from '../../client.ts';
import { oneAtATime } from '../../oneAtATime.ts';
import { useCoreStore } from '../../stores/coreStore.ts';
import { useNoticeStore } from '../../stores/noticeStore.ts';
import { appendStep, emptySeries, splice, type LiveSeries } from './liveSeries.ts';

const maxPoints = 2000;
/** The record is read again at most so often, however fast steps come. */
const refreshMs = 500;
/** So many of the newest steps are kept: the history, read again, may not hold them yet. */
const numRecent = 2000;

/** A command that has not been done by then is told of: a step may take a minute, and a large model is long in saving. */
const silentMs = 2000;
const waits = {
  pause: 'Finishing the step, then it pauses',
  stop: 'Finishing the step and saving',
  checkpoint: 'Finishing the step and saving a checkpoint',
  profile: 'Waiting for a step to be profiled',
  resume: 'Going on',
};

type Columns = Map<RunMetric, LiveSeries>;

/** One run as it is now and as it goes on: its record, its series, its events. Follows `id` and the core's restarts. */
export function useRun(id: Ref<string>, axis: Ref<RunAxis>) {
  const core = useCoreStore();
  const notices = useNoticeStore();
  const run = shallowRef<RunDetail>();
  const series = shallowRef<Columns>(new Map());
  /** Finer points of the steps that are zoomed in on. */
  const detail = shallowRef<Columns>(new Map());
  const lastStep = shallowRef<RunStep>();
  const error = shallowRef<unknown>();
  let close: (() => void) | undefined;
  let generation = 0;
  let pending: RunStep[] = [];
  let recent: RunStep[] = [];
  let refreshTimer: ReturnType<typeof setTimeout> | undefined;

  async function readSeries(range: { fromStep?: number; toStep?: number } = {}): Promise<Columns> {
    const columns = await Promise.all(
      runMetrics.map((metric) =>
        client.call('runs:series', { ids: [id.value], metric, maxPoints, axis: axis.value, ...range }),
      ),
    );
    return new Map(runMetrics.map((metric, i) => [metric, columns[i]?.series[0] ?? emptySeries()]));
  }

  async function load(): Promise<void> {
    const mine = (generation += 1);
    try {
      const [shown, columns] = await Promise.all([client.call('runs:show', { id: id.value }), readSeries()]);
      if (mine !== generation) return;
      run.value = shown.run;
      series.value = append(columns, recent);
      detail.value = new Map();
      error.value = undefined;
    } catch (reason) {
      if (mine === generation) error.value = reason;
    }
  }

  /** However fast steps come, and however many were dropped: the history is read once at a time. */
  const loadSoon = oneAtATime(load, refreshMs);

  /** Reads the steps that a chart is zoomed in on as finely as they are kept; outside nothing changes. */
  async function zoom(fromStep: number, toStep: number): Promise<void> {
    const mine = generation;
    const { steps = [] } = series.value.get('loss') ?? {};
    const isCoarse = steps.length > 0 && (steps[steps.length - 1] ?? 0) > steps.length + 1;
    if (!isCoarse) return;
    const fine = await readSeries({ fromStep: Math.max(1, fromStep), toStep }).catch(() => undefined);
    if (fine !== undefined && mine === generation) detail.value = fine;
  }

  function follow(): void {
    close?.();
    const link = client.subscribe('runs:watch', { id: id.value }, (updates, numDropped) => {
      if (numDropped > 0) loadSoon();
      for (const update of updates) {
        if (update.kind === 'step') pending.push(update.step);
        else if (update.kind === 'run' && run.value !== undefined)
          run.value = { ...run.value, ...update.run };
        else if (update.kind === 'event') refreshSoon();
      }
      if (pending.length > 0) drawQueue.ask(commit);
    });
    link.done.catch(() => undefined);
    close = () => {
      link.close();
    };
  }

  const append = (columns: Columns, steps: RunStep[]): Columns =>
    new Map(
      runMetrics.map((metric) => [
        metric,
        appendStep(columns.get(metric) ?? emptySeries(), metric, steps, axis.value),
      ]),
    );

  function commit(): void {
    const steps = pending;
    pending = [];
    // A run that went on from a checkpoint takes steps again: what was drawn of them is of the past.
    if ((steps[0]?.step ?? 0) <= (recent.at(-1)?.step ?? -Infinity)) {
      recent = [];
      loadSoon();
    }
    recent = [...recent, ...steps].slice(-numRecent);
    const next = append(series.value, steps);
    series.value = next;
    lastStep.value = steps.at(-1);
    // The core merges blocks of steps; extremes stay in the band.
    if ((next.get('loss')?.steps.length ?? 0) > 2 * maxPoints) loadSoon();
  }

  /** Evaluations, checkpoints and notes change the record itself. */
  function refreshSoon(): void {
    refreshTimer ??= setTimeout(() => {
      refreshTimer = undefined;
      void refresh();
    }, refreshMs);
  }

  async function refresh(): Promise<void> {
    const wanted = id.value;
    const shown = await client.call('runs:show', { id: wanted }).catch(() => undefined);
    if (shown !== undefined && wanted === id.value) run.value = shown.run;
  }

  async function attempt(what: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
      await refresh();
    } catch (reason) {
      notices.fail(what, reason);
    }
  }
  const command = (name: 'pause' | 'stop' | 'checkpoint' | 'profile' | 'resume', from?: CheckpointChoice) =>
    attempt(`${name[0]?.toUpperCase() ?? ''}${name.slice(1)} did not work`, async () => {
      const told = setTimeout(() => {
        notices.note(waits[name]);
      }, silentMs);
      try {
        if (name === 'resume')
          await client.call('runs:resume', { id: id.value, ...(from !== undefined && { from }) });
        else await client.call('runs:command', { id: id.value, command: name });
      } finally {
        clearTimeout(told);
      }
    });
  /** Without `noteId` a new note; an empty text removes it. */
  const writeNote = (note: { noteId?: number; step?: number; text: string }) =>
    attempt('The note was not kept', () => client.call('runs:time-note', { id: id.value, ...note }));

  watch(
    [id, () => core.epoch],
    ([wanted, epoch]) => {
      if (epoch === 0 || wanted === '') return;
      run.value = undefined;
      lastStep.value = undefined;
      pending = [];
      recent = [];
      series.value = new Map();
      detail.value = new Map();
      // Following first: what happens while the series are read is appended twice at worst, and appendStep drops it.
      follow();
      void load();
    },
    { immediate: true },
  );
  watch(axis, () => void load());
  onScopeDispose(() => {
    close?.();
    drawQueue.forget(commit);
    clearTimeout(refreshTimer);
  });

  return {
    run,
    lastStep,
    error,
    column: (metric: RunMetric) =>
      computed(() => splice(series.value.get(metric) ?? emptySeries(), detail.value.get(metric))),
    zoom,
    command,
    writeNote,
    refresh,
    load,
  };
}
