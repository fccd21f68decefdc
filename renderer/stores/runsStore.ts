import { defineStore } from 'pinia';
import { computed, ref, shallowRef, watch } from 'vue';
import type { RunStep, RunSummary } from '../../main/contract/runs.ts';
import { drawQueue } from '../charts/drawQueue.ts';
import { client } from '../client.ts';
import { oneAtATime } from '../oneAtATime.ts';
import { useCoreStore } from './coreStore.ts';
import { useNoticeStore } from './noticeStore.ts';

/** The pace of a run is that of so many of its newest steps. */
const paceSteps = 20;
/** After updates were dropped the list is read again, with so much rest between. */
const reloadRestMs = 1000;

const goingStates = ['running', 'paused', 'queued'] as const;
const rank = (run: RunSummary) => goingStates.findIndex((state) => state === run.status);

/** All runs of the history, kept as the core tells of them, and the newest steps of those that are going. */
export const useRunsStore = defineStore('runs', () => {
  const core = useCoreStore();
  const notices = useNoticeStore();
  const byId = shallowRef(new Map<string, RunSummary>());
  /** In their order; the newest last. */
  const latestSteps = shallowRef(new Map<string, readonly RunStep[]>());
  const isLoaded = ref(false);

  const put = (runs: RunSummary[]) => {
    if (runs.length === 0) return;
    const next = new Map(byId.value);
    for (const run of runs) next.set(run.id, run);
    byId.value = next;
  };

  async function reload(): Promise<void> {
    const { runs } = await client.call('runs:list', {});
    byId.value = new Map(runs.map((run) => [run.id, run]));
    isLoaded.value = true;
  }

  const reloadSoon = oneAtATime(
    () =>
      reload().catch((error: unknown) => {
        notices.fail('Reading the runs', error);
      }),
    reloadRestMs,
  );

  const newest = new Map<string, RunStep[]>();
  function showSteps(): void {
    latestSteps.value = new Map([...newest].map(([id, steps]) => [id, steps.slice(-paceSteps)]));
  }

  function follow(): void {
    newest.clear();
    const link = client.subscribe('runs:watch', {}, (updates, numDropped) => {
      if (numDropped > 0) reloadSoon();
      put(updates.flatMap((update) => (update.kind === 'run' ? [update.run] : [])));
      for (const update of updates) {
        if (update.kind !== 'step') continue;
        const steps = newest.get(update.runId) ?? [];
        newest.set(update.runId, steps);
        steps.push(update.step);
        if (steps.length >= 2 * paceSteps) steps.splice(0, paceSteps);
        drawQueue.ask(showSteps);
      }
    });
    // Its end is the core's end, which the core store tells of.
    link.done.catch(() => undefined);
  }

  // Every start of the core is a new history to read.
  watch(
    () => core.epoch,
    (epoch) => {
      if (epoch === 0) return;
      follow();
      reload().catch((error: unknown) => {
        notices.fail('Reading the runs', error);
      });
    },
    { immediate: true },
  );

  const all = computed(() => [...byId.value.values()].sort((a, b) => b.createdAtMs - a.createdAtMs));
  return {
    byId,
    all,
    isLoaded,
    latestSteps,
    /** What trains before what is paused, and that before what waits; of each kind the newest first. */
    going: computed(() => all.value.filter((run) => rank(run) >= 0).sort((a, b) => rank(a) - rank(b))),
    reload,
  };
});
