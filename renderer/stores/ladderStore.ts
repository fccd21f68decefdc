import { defineStore } from 'pinia';
import { ref, shallowRef } from 'vue';
import type { Ladder } from '../../main/contract/bench.ts';
import { client } from '../client.ts';

interface LadderProgress {
  what: string;
  done: number;
  total: number;
}

/** What packing and kernels gain here, as it was measured: a measurement goes on while other views are open. */
export const useLadderStore = defineStore('ladder', () => {
  const ladders = shallowRef<Ladder[]>();
  const error = shallowRef<unknown>();
  const progress = ref<LadderProgress>();
  let abort: AbortController | undefined;

  async function load(): Promise<void> {
    try {
      ({ ladders: ladders.value } = await client.call('bench:ladders', {}));
    } catch (reason) {
      error.value = reason;
    }
  }

  async function measure(): Promise<void> {
    if (abort !== undefined) return;
    abort = new AbortController();
    const { signal } = abort;
    error.value = undefined;
    progress.value = { what: 'starting', done: 0, total: 1 };
    try {
      const onProgress = ({
        what,
        done,
        total = 1,
      }: {
        what: string;
        done: number;
        total?: number | undefined;
      }) => {
        progress.value = { what, done, total };
      };
      const { ladder } = await client.call('bench:ladder', {}, { signal, onProgress });
      ladders.value = [ladder, ...(ladders.value ?? [])];
    } catch (reason) {
      if (!signal.aborted) error.value = reason;
    } finally {
      abort = undefined;
      progress.value = undefined;
    }
  }

  return {
    ladders,
    error,
    progress,
    load,
    measure,
    cancel: () => {
      abort?.abort();
    },
  };
});
