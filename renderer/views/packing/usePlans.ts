import { onScopeDispose, shallowRef, watch, type Ref } from 'vue';
import type {
  PackedExamples,
  PackingLayout,
  PackingSummary,
  strategyNames,
} from '../../../main/contract/packing.ts';
import { client } from '../../client.ts';
import { firstBins as beginningOf } from './scene.ts';

export type Strategy = (typeof strategyNames)[number];
export interface Plan {
  summary: PackingSummary;
  /** Its first bins, to be shown small. */
  beginning: PackingLayout;
  /** All of it, for the plans that are drawn. */
  layout: PackingLayout | undefined;
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

/** Bins of a plan's beginning. */
const firstBins = 8;
/** Placements of all epochs up to which every plan is kept whole: a change of strategy is then seen at once. */
const mostKeptWhole = 300_000;

/** The plan of every strategy, those that are `drawn` first and whole; a change drops what is on its way. */
export function usePlans(choice: Ref<PackingChoice>, drawn: Ref<Strategy[]>) {
  const plans = shallowRef(new Map<Strategy, Plan>());
  const error = shallowRef<unknown>();
  const isPlanning = shallowRef(false);
  let abort: AbortController | undefined;
  /** What has come of this choice. */
  let known = new Map<Strategy, Plan>();

  async function ask(name: Strategy, isWhole: boolean, signal: AbortSignal): Promise<Plan | undefined> {
    const { dataset, budget, epochs, binsPerStep } = choice.value;
    const { summary, layout } = await client.call(
      'packing:plan',
      {
        source: { dataset },
        options: { budget, strategy: name, epochs, gradAccumulation: binsPerStep },
        withLayout: true,
        ...(!isWhole && { mostBins: firstBins }),
      },
      { signal },
    );
    if (layout === undefined) return undefined;
    return { summary, beginning: beginningOf(layout, firstBins), layout: isWhole ? layout : undefined };
  }
  /** Asks for what is missing; plans of another choice stay in sight until the drawn ones of this are there. */
  async function fill(signal: AbortSignal): Promise<void> {
    const others = strategies.map(({ name }) => name).filter((name) => !drawn.value.includes(name));
    let isSmall = true;
    for (const [at, name] of [...drawn.value, ...others].entries()) {
      const isDrawn = at < drawn.value.length;
      const found = known.get(name);
      if (found?.layout === undefined && (found === undefined || isDrawn)) {
        const plan = await ask(name, isDrawn || isSmall, signal);
        if (signal.aborted) return;
        if (plan) known.set(name, plan);
      }
      const { examples = 0, epochs = 1 } = known.get(name)?.summary ?? {};
      isSmall = examples * epochs <= mostKeptWhole;
      // A large plan that is no longer drawn is not kept.
      if (!isDrawn && !isSmall) dropLayout(name);
      if (at + 1 >= drawn.value.length) plans.value = new Map(known);
    }
  }
  function dropLayout(name: Strategy): void {
    const plan = known.get(name);
    if (plan?.layout) known.set(name, { ...plan, layout: undefined });
  }
  async function plan(): Promise<void> {
    abort?.abort();
    if (choice.value.dataset === '') return;
    abort = new AbortController();
    const { signal } = abort;
    isPlanning.value = true;
    try {
      await fill(signal);
      error.value = undefined;
    } catch (reason) {
      if (!signal.aborted) error.value = reason;
    } finally {
      if (!signal.aborted) isPlanning.value = false;
    }
  }
  watch(
    choice,
    () => {
      known = new Map();
      void plan();
    },
    { immediate: true },
  );
  watch(
    () => drawn.value.join(),
    () => void plan(),
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
