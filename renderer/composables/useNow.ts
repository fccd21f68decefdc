import { onScopeDispose, ref, type Ref } from 'vue';

/** The time, renewed every `intervalMs`: for “5 min ago” that stays true. */
export function useNow(intervalMs: number): Ref<number> {
  const now = ref(Date.now());
  const timer = setInterval(() => {
    now.value = Date.now();
  }, intervalMs);
  onScopeDispose(() => {
    clearInterval(timer);
  });
  return now;
}
