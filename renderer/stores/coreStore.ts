import { defineStore } from 'pinia';
import { computed, ref } from 'vue';
import type { CoreState } from '../../main/contract/host.ts';
import { client } from '../client.ts';

/** How the core is. `epoch` counts its starts: what was read or subscribed before belongs to another core. */
export const useCoreStore = defineStore('core', () => {
  const state = ref<CoreState>({ kind: 'starting' });
  const epoch = ref(0);

  function start(): void {
    client.subscribe('host:core-state', {}, (events) => {
      const latest = events.at(-1);
      if (latest === undefined) return;
      if (latest.kind === 'ready' && state.value.kind !== 'ready') epoch.value += 1;
      state.value = latest;
    });
  }

  return {
    state,
    epoch,
    isReady: computed(() => state.value.kind === 'ready'),
    start,
    restart: () => client.call('host:restart-core', {}),
  };
});
