import { onScopeDispose, shallowRef, watch, type Ref } from 'vue';
import type { PackingLayout, PackingSummary, strategyNames } from '../../../main/contract/packing.ts';
import { client } from '../../client.ts';

export type Strategy = (typeof strategyNames)[number];
export interface Plan {
  summary: PackingSummary;
  layout: PackingLayout;
}

export const strategies: { name: Strategy; title: string }[] = [
  { name: 'padded', title: 'Padded' },
  { name: 'sorted', title: 'Length-sorted' },
  { name: 'in-order', title: 'In order' },
  { name: 'ffd', title: 'First-fit decreasing' },
  { name: 'bfd', title: 'Best-fit decreasing' },
  { name: 'best-fit', title: 'Best fit, shuffled' },
];

/** The plan of every strategy for one dataset, budget and number of epochs; a change drops what is on its way. */
export function usePlans(dataset: Ref<string>, budget: Ref<number>, epochs: Ref<number>) {
  const plans = shallowRef(new Map<Strategy, Plan>());
  const error = shallowRef<unknown>();
  const isPlanning = shallowRef(false);
  let abort: AbortController | undefined;

  watch(
    [dataset, budget, epochs],
    async ([id, wantedBudget, wantedEpochs]) => {
      abort?.abort();
      if (id === '') return;
      abort = new AbortController();
      const { signal } = abort;
      isPlanning.value = true;
      try {
        const next = new Map<Strategy, Plan>();
        for (const { name } of strategies) {
          const options = { budget: wantedBudget, strategy: name, epochs: wantedEpochs };
          const { summary, layout } = await client.call(
            'packing:plan',
            { source: { dataset: id }, options, withLayout: true },
            { signal },
          );
          if (signal.aborted) return;
          if (layout !== undefined) next.set(name, { summary, layout });
        }
        plans.value = next;
        error.value = undefined;
      } catch (reason) {
        if (!signal.aborted) error.value = reason;
      } finally {
        if (!signal.aborted) isPlanning.value = false;
      }
    },
    { immediate: true },
  );
  onScopeDispose(() => abort?.abort());
  return { plans, error, isPlanning };
}
