import { computed, ref } from 'vue';

const key = 'tessera.compare.ignored';
const usual = '["name","seed","hashes.plan","hashes.recipe","hashes.cache","hashes.dataset"]';

interface Difference {
  field: string;
  values: unknown[];
}

/** Recipe fields that are put aside where runs are compared; they are remembered. */
export function useIgnored(differences: () => Difference[]) {
  const ignored = ref<string[]>(JSON.parse(localStorage.getItem(key) ?? usual) as string[]);
  function set(next: string[]): void {
    ignored.value = next;
    localStorage.setItem(key, JSON.stringify(next));
  }
  return {
    shown: computed(() => differences().filter(({ field }) => !ignored.value.includes(field))),
    hidden: computed(() => differences().filter(({ field }) => ignored.value.includes(field))),
    putAside: (field: string) => {
      set([...ignored.value, field]);
    },
    showAgain: (field: string) => {
      set(ignored.value.filter((one) => one !== field));
    },
  };
}
