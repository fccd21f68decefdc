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
  /** Those that are as fine as they are drawn, by run, of so many steps. */
  const fine = new Map<string, { steps: number; series: Series }>();
  let shape = '';
  let generation = 0;

  async function load({ runs, metric, axis, numPixels }: CurvesWanted): Promise<void> {
    const mine = (generation += 1);
    if (numPixels <= 0 || runs.length === 0) return;
    const maxPoints = Math.ceil(numPixels / roundTo) * roundTo;
    if (shape !== (shape = [metric, axis, maxPoints].join())) fine.clear();
    const stepsOf = new Map(runs.map(({ id, steps }) => [id, steps]));
    const keep = (series: Series) =>
      fine.set(series.runId, { steps: stepsOf.get(series.runId) ?? 0, series });
    const kept = new Map<string, Series>();
    for (const { id, steps } of runs) {
      const known = fine.get(id);
      if (known?.steps === steps) kept.set(id, known.series);
    }
    const read = async (ids: string[]) =>
      ids.length === 0 ? [] : (await client.call('runs:series', { ids, metric, axis, maxPoints })).series;
    const show = () => {
      curves.value = runs.flatMap(({ id }) => kept.get(id) ?? []);
    };
    const first = await read(runs.flatMap(({ id }) => (kept.has(id) ? [] : [id])));
    if (mine !== generation) return;
    for (const series of first) kept.set(series.runId, series);
    show();
    const coarse = first.filter((each) => isCoarse(each, maxPoints));
    for (const series of first) if (!coarse.includes(series)) keep(series);
    for (const ids of groups(coarse)) {
      const sharper = await read(ids);
      if (mine !== generation) return;
      for (const series of sharper) {
        keep(series);
        kept.set(series.runId, series);
      }
    }
    // Drawing fifty lines costs the page more than reading them costs the core: once for all.
    if (coarse.length > 0) show();
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

const groupSize = 5;

/** So few at a time that each is worth its finer roll-ups to the core. */
function groups(coarse: Series[]): string[][] {
  return Array.from({ length: Math.ceil(coarse.length / groupSize) }, (_, i) =>
    coarse.slice(i * groupSize, (i + 1) * groupSize).map(({ runId }) => runId),
  );
}
