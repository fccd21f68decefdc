import { onScopeDispose, shallowRef, watch } from 'vue';
import type { RunAxis, RunMetric, Series } from '../../../main/contract/runs.ts';
import { client } from '../../client.ts';
import { useNoticeStore } from '../../stores/noticeStore.ts';

export interface CurvesWanted {
  /** Each run, and how many steps it has: one that still trains is read again. */
  runs: { id: string; steps: number }[];
  metric: RunMetric;
  axis: RunAxis;
  /** What the chart has room for; 0 until it is known. */
  numPixels: number;
}

/** A chart that is made wider a little is not worth reading its curves again. */
const roundTo = 100;

/**
 * Curves with about a point a pixel. All come first from the roll-ups that are read at once, however many there are; then
 * those that are coarser than the screen are read again, few at a time, so that neither the core nor the page is held up.
 */
export function useCurves(wanted: () => CurvesWanted) {
  const notices = useNoticeStore();
  const curves = shallowRef<Series[]>([]);
  /** Those that are as fine as they are drawn, by run and steps. */
  const fine = new Map<string, Series>();
  let shape = '';
  let generation = 0;

  async function load({ runs, metric, axis, numPixels }: CurvesWanted): Promise<void> {
    const mine = (generation += 1);
    if (numPixels <= 0 || runs.length === 0) return;
    const maxPoints = Math.ceil(numPixels / roundTo) * roundTo;
    if (shape !== (shape = [metric, axis, maxPoints].join())) fine.clear();
    const keyOf = new Map(runs.map(({ id, steps }) => [id, `${id} ${String(steps)}`]));
    const kept = new Map(runs.map(({ id }) => [id, fine.get(keyOf.get(id) ?? '')]));
    const read = async (ids: string[]) =>
      ids.length === 0 ? [] : (await client.call('runs:series', { ids, metric, axis, maxPoints })).series;
    const show = (fresh: Series[]) => {
      for (const series of fresh) kept.set(series.runId, series);
      curves.value = runs.flatMap(({ id }) => kept.get(id) ?? []);
    };
    const missing = runs.flatMap(({ id }) => (kept.get(id) === undefined ? [id] : []));
    const first = await read(missing);
    if (mine !== generation) return;
    show(first);
    const coarse = first.filter((each) => isCoarse(each, maxPoints));
    for (const series of first) if (!coarse.includes(series)) fine.set(keyOf.get(series.runId) ?? '', series);
    for (const ids of groups(coarse, axis)) {
      const sharper = await read(ids);
      if (mine !== generation) return;
      for (const series of sharper) fine.set(keyOf.get(series.runId) ?? '', series);
      show(sharper);
    }
  }

  watch(
    () => JSON.stringify(wanted()),
    () => {
      load(wanted()).catch((error: unknown) => {
        notices.fail('Reading the curves', error);
      });
    },
    { immediate: true },
  );
  onScopeDispose(() => (generation += 1));
  return curves;
}

/** Whether the screen could show more of a curve than was read. */
export function isCoarse(
  { blockSteps, steps }: Pick<Series, 'blockSteps' | 'steps'>,
  maxPoints: number,
): boolean {
  return blockSteps > 1 && steps.length < maxPoints * 0.75;
}

/** So few at a time that each is worth its finer roll-ups to the core; places that are no steps are dear to look up. */
function groups(coarse: Series[], axis: RunAxis): string[][] {
  const size = axis === 'step' ? 5 : 1;
  return Array.from({ length: Math.ceil(coarse.length / size) }, (_, i) =>
    coarse.slice(i * size, (i + 1) * size).map(({ runId }) => runId),
  );
}
