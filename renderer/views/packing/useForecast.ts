import { computed, onScopeDispose, ref, shallowRef, watch, type Ref } from 'vue';
import { secondsOf, type CostModel } from '../../../main/contract/cost.ts';
import { client } from '../../client.ts';
import type { PackingChoice, Plan, Strategy } from './usePlans.ts';

export interface TimeForecast {
  seconds: number;
  errorSeconds: number;
}

/** Time of each plan by what steps were measured to cost on this machine; measured on request where nothing is known. */
export function useForecast(choice: Ref<PackingChoice>, plans: Ref<Map<Strategy, Plan>>) {
  const cost = shallowRef<CostModel>();
  const why = ref<string>();
  const isMeasuring = ref(false);
  let abort: AbortController | undefined;

  async function ask(measure: boolean): Promise<void> {
    abort?.abort();
    const { dataset, budget, binsPerStep } = choice.value;
    if (dataset === '') return;
    abort = new AbortController();
    const { signal } = abort;
    isMeasuring.value = measure;
    try {
      const args = { dataset, budget, gradAccumulation: binsPerStep, measure };
      const answer = await client.call('packing:cost', args, { signal });
      if (signal.aborted) return;
      cost.value = answer.cost;
      why.value = answer.why;
    } catch (reason) {
      if (signal.aborted) return;
      cost.value = undefined;
      why.value = reason instanceof Error ? reason.message : String(reason);
    } finally {
      if (!signal.aborted) isMeasuring.value = false;
    }
  }
  watch(choice, () => void ask(false), { immediate: true });
  onScopeDispose(() => abort?.abort());

  const forecasts = computed(() => {
    const times = new Map<Strategy, TimeForecast>();
    for (const [name, { summary }] of plans.value)
      if (cost.value !== undefined) times.set(name, secondsOf(cost.value, summary));
    return times;
  });
  return { forecasts, cost, why, isMeasuring, measure: () => void ask(true) };
}
