import { shallowRef, watch, type Ref } from 'vue';
import type { Dataset } from '../../../main/contract/datasets.ts';
import { client } from '../../client.ts';
import { useCoreStore } from '../../stores/coreStore.ts';

/** The imported datasets, to choose from. */
export function useDatasetNames(): Ref<Dataset[]> {
  const core = useCoreStore();
  const datasets = shallowRef<Dataset[]>([]);
  watch(
    () => core.epoch,
    async (epoch) => {
      if (epoch > 0)
        datasets.value = (await client.call('datasets:list', {}).catch(() => ({ datasets: [] }))).datasets;
    },
    { immediate: true },
  );
  return datasets;
}
