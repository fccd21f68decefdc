import { computed, shallowRef, watch } from 'vue';
import type { Dataset } from '../../../main/contract/datasets.ts';
import type { PackingSummary } from '../../../main/contract/packing.ts';
import type { Preflight } from '../../../main/contract/runs.ts';
import type { DoctorReport } from '../../../main/contract/system.ts';
import { client } from '../../client.ts';
import { useCoreStore } from '../../stores/coreStore.ts';
import { useDatasetsStore } from '../../stores/datasetsStore.ts';
import { useRunsStore } from '../../stores/runsStore.ts';
import { firstRecipe } from './firstRecipe.ts';
import type { BinPicture } from './drawBins.ts';

async function timed<T>(work: () => Promise<T>): Promise<{ value: T; tookMs: number }> {
  const startedMs = performance.now();
  const value = await work();
  return { value, tookMs: performance.now() - startedMs };
}
type Timed<T> = { value: T; tookMs: number };

interface Packed {
  packed: PackingSummary;
  padded: PackingSummary;
  picture: BinPicture;
}

/** The sample taken through every step but the last, each one measured on this machine as it is done. */
export function useFirstRun() {
  const core = useCoreStore();
  const datasets = useDatasetsStore();
  const runs = useRunsStore();
  const machine = shallowRef<Timed<DoctorReport>>();
  const sample = shallowRef<Timed<Dataset>>();
  const packing = shallowRef<Timed<Packed>>();
  const preflight = shallowRef<Timed<Preflight>>();
  const error = shallowRef<unknown>();

  async function importSample(): Promise<Dataset> {
    return (await client.call('datasets:import', { paths: ['bundled'], model: 'bundled' })).dataset;
  }
  async function pack(id: string): Promise<Packed> {
    const { budget } = firstRecipe.packing;
    const plan = (strategy: 'best-fit' | 'padded', withLayout: boolean) =>
      client.call('packing:plan', { source: { dataset: id }, options: { budget, strategy }, withLayout });
    const packed = await plan('best-fit', true);
    const padded = await plan('padded', false);
    const { lengths, supervised } = await client.call('datasets:lengths', { id });
    if (packed.layout === undefined) throw new Error('the plan came without its layout');
    const picture = { layout: packed.layout, budget, lengths, supervised };
    return { packed: packed.summary, padded: padded.summary, picture };
  }
  async function look(): Promise<void> {
    error.value = undefined;
    try {
      machine.value = await timed(() => client.call('system:doctor', {}));
      const imported = await timed(importSample);
      sample.value = imported;
      void datasets.reload();
      packing.value = await timed(() => pack(imported.value.id));
      preflight.value = await timed(() => client.call('runs:preflight', { recipe: firstRecipe }));
    } catch (caught) {
      error.value = caught;
    }
  }
  watch(
    () => core.epoch,
    (epoch) => {
      if (epoch > 0) void look();
    },
    { immediate: true },
  );

  /** The sample's last finished run: what a run costs here is known once there was one. */
  const before = computed(() =>
    runs.all.find(({ name, status }) => name === firstRecipe.name && status === 'completed'),
  );

  /** Creates the run; resolves to its id. */
  async function start(): Promise<string> {
    return (await client.call('runs:create', { recipe: firstRecipe })).run.id;
  }
  return { machine, sample, packing, preflight, error, before, look, start };
}
