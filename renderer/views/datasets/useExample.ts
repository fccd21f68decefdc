import { onScopeDispose, shallowRef, watch, type Ref } from 'vue';
import type { ExampleOrigins, ExampleTokens } from '../../../main/contract/datasets.ts';
import { client } from '../../client.ts';

/** One example of a dataset, its origins a moment later: those need the row read and rendered again. */
export function useExample(id: string, index: Ref<number>) {
  const example = shallowRef<ExampleTokens>();
  const origins = shallowRef<ExampleOrigins>();
  const error = shallowRef<unknown>();
  /** Why there are no origins. */
  const originsError = shallowRef<unknown>();
  let abort = new AbortController();

  async function load(wanted: number): Promise<void> {
    abort.abort();
    abort = new AbortController();
    const { signal } = abort;
    const args = { id, index: wanted };
    const found = client.call('datasets:example', args, { signal });
    const traced = client.call('datasets:origins', args, { signal });
    traced.catch(() => undefined);
    try {
      const shown = await found;
      if (signal.aborted) return;
      [example.value, origins.value, error.value, originsError.value] = [
        shown,
        undefined,
        undefined,
        undefined,
      ];
    } catch (caught) {
      if (!signal.aborted) error.value = caught;
      return;
    }
    const outcome = await traced.then(
      (turns) => ({ turns }),
      (caught: unknown) => ({ caught }),
    );
    if (abort.signal !== signal) return;
    if ('turns' in outcome) origins.value = outcome.turns;
    else originsError.value = outcome.caught;
  }

  watch(index, (wanted) => void load(wanted), { immediate: true });
  onScopeDispose(() => {
    abort.abort();
  });
  return { example, origins, error, originsError };
}
