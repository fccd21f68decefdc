import { defineStore } from 'pinia';
import { computed, ref, shallowReactive } from 'vue';
import { rankEntries, type PaletteEntry } from '../components/paletteRanking.ts';

const maxShown = 100;

/** The command palette: every view adds what it can do while it is shown. */
export const usePaletteStore = defineStore('palette', () => {
  const isOpen = ref(false);
  const isSheetOpen = ref(false);
  const query = ref('');
  const groups = shallowReactive(new Map<string, PaletteEntry[]>());
  return {
    isOpen,
    /** The sheet of keyboard shortcuts. */
    isSheetOpen,
    query,
    matches: computed(() => rankEntries([...groups.values()].flat(), query.value).slice(0, maxShown)),
    open: () => {
      query.value = '';
      isOpen.value = true;
    },
    close: () => {
      isOpen.value = false;
    },
    /** Replaces the entries of one owner; an empty list takes them away. */
    provide: (owner: string, entries: PaletteEntry[]) => {
      if (entries.length === 0) groups.delete(owner);
      else groups.set(owner, entries);
    },
  };
});
