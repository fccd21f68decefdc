import { onScopeDispose, ref, shallowRef, watch, type Ref } from 'vue';
import type { CostModel } from '../../../main/contract/cost.ts';
import type { PackingSummary } from '../../../main/contract/packing.ts';
import { client } from '../../client.ts';
import { strategies, type PackingChoice, type Strategy } from './usePlans.ts';

export const usualBudgets = [512, 1024, 2048, 4096, 8192, 16_384, 32_768];

/** Every strategy at several budgets, filled in cell by cell while it is asked for. */
export function useBudgets(choice: Ref<PackingChoice>, isWanted: Ref<boolean>) {
  const cells = shallowRef(new Map<string, PackingSummary>());
  /** By budget, where steps of its size were measured. */
  const costs = shallowRef(new Map<number, CostModel>());
  const isFilling = ref(false);
  const error = shallowRef<unknown>();
  let abort: AbortController | undefined;

  watch(
    [choice, isWanted],
    async ([{ dataset, epochs, binsPerStep }, wanted]) => {
      abort?.abort();
      cells.value = new Map();
      costs.value = new Map();
      error.value = undefined;
      isFilling.value = wanted && dataset !== '';
      if (!isFilling.value) return;
      abort = new AbortController();
      const { signal } = abort;
      try {
        for (const budget of usualBudgets) {
          const asked = { dataset, budget, gradAccumulation: binsPerStep };
          const { cost } = await client
            .call('packing:cost', asked, { signal })
            .catch(() => ({ cost: undefined }));
          if (cost !== undefined && !signal.aborted) costs.value = new Map(costs.value).set(budget, cost);
          for (const { name: strategy } of strategies) {
            const options = { budget, strategy, epochs, gradAccumulation: binsPerStep };
            const args = { source: { dataset }, options };
            const { summary } = await client.call('packing:plan', args, { signal });
            if (signal.aborted) return;
            cells.value = new Map(cells.value).set(keyOf(budget, strategy), summary);
          }
        }
      } catch (reason) {
        if (!signal.aborted) error.value = reason;
      } finally {
        if (!signal.aborted) isFilling.value = false;
      }
    },
    { immediate: true },
  );
  onScopeDispose(() => abort?.abort());
  return { cells, costs, isFilling, error };
}

export const keyOf = (budget: number, strategy: Strategy) => `${String(budget)} ${strategy}`;
