import { onScopeDispose, ref, shallowRef, watch, type Ref } from 'vue';
import { client } from '../../client.ts';
import { useNoticeStore } from '../../stores/noticeStore.ts';

const waitMs = 150;

/** Looks for a text in all examples while it is typed; matches come in as they are found. */
export function useRowSearch(id: string, text: Ref<string>) {
  const notices = useNoticeStore();
  const matches = shallowRef<number[]>();
  const scanned = ref(0);
  const isOver = ref(true);
  const tookMs = ref(0);
  let stop: () => void = () => undefined;

  watch(
    text,
    (wanted) => {
      stop();
      if (wanted === '') {
        matches.value = undefined;
        return;
      }
      const timer = setTimeout(() => {
        stop = start(wanted);
      }, waitMs);
      stop = () => {
        clearTimeout(timer);
      };
    },
    { immediate: true },
  );
  onScopeDispose(() => {
    stop();
  });

  function start(wanted: string): () => void {
    const startedMs = performance.now();
    let isCurrent = true;
    matches.value = [];
    scanned.value = 0;
    isOver.value = false;
    const link = client.subscribe('datasets:search', { id, text: wanted }, (events) => {
      if (!isCurrent) return;
      const found = events.flatMap((event) => event.matches);
      if (found.length > 0) matches.value = [...(matches.value ?? []), ...found];
      scanned.value = events.at(-1)?.scanned ?? scanned.value;
    });
    link.done
      .catch((error: unknown) => {
        if (isCurrent) notices.fail('Searching the rows', error);
      })
      .finally(() => {
        if (!isCurrent) return;
        isOver.value = true;
        tookMs.value = performance.now() - startedMs;
      });
    return () => {
      isCurrent = false;
      link.close();
    };
  }

  return { matches, scanned, isOver, tookMs };
}
