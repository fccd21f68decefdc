import { defineStore } from 'pinia';
import { ref } from 'vue';

const isRecipe = (path: string) => /\.ya?ml$/i.test(path);

/**
 * Files given to the window, wherever they came from (dropped, opened with, chosen). The views that know what to do
 * with them take them from here.
 */
export const useIncomingStore = defineStore('incoming', () => {
  const data = ref<string[][]>([]);
  const recipes = ref<string[]>([]);
  return {
    /** Batches waiting to be imported; one drop is one dataset. */
    data,
    recipes,
    take: (paths: string[]) => {
      recipes.value.push(...paths.filter(isRecipe));
      const rest = paths.filter((path) => !isRecipe(path));
      if (rest.length > 0) data.value.push(rest);
    },
  };
});
