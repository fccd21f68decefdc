import { onScopeDispose, shallowRef, watch, type Ref } from 'vue';
import type {
  PackedExamples,
  PackingLayout,
  PackingSummary,
  strategyNames,
} from '../../../main/contract/packing.ts';
import { client } from '../../client.ts';

export type Strategy = (typeof strategyNames)[number];
export interface Plan {
  summary: PackingSummary;
  layout: PackingLayout;
}

/** What is packed, and how; all of it stands in the address. */
export interface PackingChoice {
  dataset: string;
  budget: number;
  epochs: number;
  /** Bins that make one step. */
  binsPerStep: number;
}

export const strategies: { name: Strategy; title: string }[] = [
  { name: 'padded', title: 'Padded' },
  { name: 'sorted', title: 'Length-sorted' },
  { name: 'in-order', title: 'In order' },
  { name: 'ffd', title: 'First-fit decreasing' },
  { name: 'bfd', title: 'Best-fit decreasing' },
  { name: 'best-fit', title: 'Best fit, shuffled' },
];
export const titleOf = (name: Strategy) => strategies.find((one) => one.name === name)?.title ?? name;

/** The plan of every strategy, as they come; a change drops what is on its way. */
export function usePlans(choice: Ref<PackingChoice>) {
  const plans = shallowRef(new Map<Strategy, Plan>());
  const error = shallowRef<unknown>();
  const isPlanning = shallowRef(false);
  let abort: AbortController | undefined;

  watch(
    choice,
    async ({ dataset, budget, epochs, binsPerStep }) => {
      abort?.abort();
      if (dataset === '') return;
      abort = new AbortController();
      const { signal } = abort;
      isPlanning.value = true;
      try {
        const next = new Map<Strategy, Plan>();
        for (const { name } of strategies) {
          const options = { budget, strategy: name, epochs, gradAccumulation: binsPerStep };
          const { summary, layout } = await client.call(
            'packing:plan',
            { source: { dataset }, options, withLayout: true },
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

/** Masks and files of a dataset's examples; where they cannot be had the picture says why and goes without. */
export function usePackedExamples(dataset: () => string) {
  const examples = shallowRef<PackedExamples>();
  const problem = shallowRef<string>();
  let abort: AbortController | undefined;
  watch(
    dataset,
    async (id) => {
      abort?.abort();
      examples.value = undefined;
      problem.value = undefined;
      if (id === '') return;
      abort = new AbortController();
      const { signal } = abort;
      try {
        const found = await client.call('packing:examples', { dataset: id }, { signal });
        if (!signal.aborted) examples.value = found;
      } catch (reason) {
        if (!signal.aborted) problem.value = reason instanceof Error ? reason.message : String(reason);
      }
    },
    { immediate: true },
  );
  onScopeDispose(() => abort?.abort());
  return { examples, problem };
}
