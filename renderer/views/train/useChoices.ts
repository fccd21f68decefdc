import { computed, shallowRef, watch, type ComputedRef } from 'vue';
import { client } from '../../client.ts';
import { useCoreStore } from '../../stores/coreStore.ts';
import { deviceChoices } from './deviceChoices.ts';
import type { Choice, RecipeField } from './recipeFields.ts';

/**
 * What a field can be chosen from: its own list, the imported datasets or the devices of this machine.
 * `value`, what the recipe says, is among them even where it is not found here.
 * undefined: the field is not chosen from a list.
 */
export function useChoices(field: RecipeField, value: () => string): ComputedRef<Choice[] | undefined> {
  const lookUp = lookUps[field.kind];
  if (lookUp === undefined) return computed(() => field.choices);
  const core = useCoreStore();
  const choices = shallowRef<Choice[]>([]);
  watch(
    () => core.epoch,
    async (epoch) => {
      if (epoch > 0) choices.value = await lookUp().catch(() => []);
    },
    { immediate: true },
  );
  return computed(() => {
    const all = [...(field.choices ?? []), ...choices.value];
    return all.some((choice) => choice.value === value())
      ? all
      : [...all, { value: value(), label: value() }];
  });
}

const lookUps: Partial<Record<RecipeField['kind'], () => Promise<Choice[]>>> = {
  dataset: async () =>
    (await client.call('datasets:list', {})).datasets.map(({ id, name }) => ({ value: id, label: name })),
  device: async () => deviceChoices((await client.call('system:doctor', {})).gpus),
};
