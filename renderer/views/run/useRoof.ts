import { shallowRef, watch } from 'vue';
import type { RunDetail } from '../../../main/contract/runs.ts';
import { client } from '../../client.ts';

/**
 * What the run's device can reach at most, in floating-point operations a second, as its profile measured it; undefined
 * until there is one.
 */
export function useRoof(run: () => RunDetail) {
  const roof = shallowRef<number>();
  watch(
    () => [run().id, run().events.filter(({ kind }) => kind === 'profile').length] as const,
    async ([id, numProfiles], old) => {
      if (id !== old?.[0]) roof.value = undefined;
      if (numProfiles === 0) return;
      // Without a profile the chart shows the rate itself.
      const found = await client.call('runs:profile', { id }).catch(() => undefined);
      if (id === run().id) roof.value = found?.profile.roof?.flopsPerSecond;
    },
    { immediate: true },
  );
  return roof;
}
