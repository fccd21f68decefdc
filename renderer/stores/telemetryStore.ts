import { defineStore } from 'pinia';
import { shallowRef, watch } from 'vue';
import type { Telemetry } from '../../main/contract/telemetry.ts';
import { client } from '../client.ts';
import { useCoreStore } from './coreStore.ts';

/** What is shown changes at most so often: numbers that flicker cannot be read. */
const showMs = 500;

/** What the machine says of itself now. */
export const useTelemetryStore = defineStore('telemetry', () => {
  const core = useCoreStore();
  const latest = shallowRef<Telemetry>();
  let shownAtMs = 0;

  watch(
    () => core.epoch,
    (epoch) => {
      if (epoch === 0) return;
      const link = client.subscribe('telemetry:watch', {}, (events) => {
        const event = events.at(-1);
        if (event === undefined || performance.now() - shownAtMs < showMs) return;
        shownAtMs = performance.now();
        latest.value = event;
      });
      // Its end is the core's end, which the core store tells of.
      link.done.catch(() => undefined);
    },
    { immediate: true },
  );
  return { latest };
});
