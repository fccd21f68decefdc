import { computed, ref, shallowRef, watch } from 'vue';
import type { ErrorBody } from '../../../main/contract/errors.ts';
import type { RunSummary } from '../../../main/contract/runs.ts';
import { client } from '../../client.ts';
import { useNoticeStore } from '../../stores/noticeStore.ts';
import { useRunsStore } from '../../stores/runsStore.ts';
import { errorInWindow } from '../../errorInWindow.ts';

export type Shelf = 'all' | 'going' | 'archive' | 'deleted';
const typingMs = 80;

/** The runs of a shelf, narrowed by a search, and the searches that were kept. */
export function useRunList() {
  const store = useRunsStore();
  const notices = useNoticeStore();
  const query = ref('');
  const shelf = ref<Shelf>('all');
  const error = shallowRef<ErrorBody>();
  const tookMs = ref(0);
  const searches = shallowRef<{ name: string; query: string }[]>([]);
  /** Answers of the core; undefined where the store's own list is what is shown. */
  const answer = shallowRef<RunSummary[]>();
  let asked = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  async function ask(): Promise<void> {
    const mine = (asked += 1);
    const [text, where] = [query.value.trim(), shelf.value];
    if (text === '' && (where === 'all' || where === 'going')) {
      answer.value = undefined;
      error.value = undefined;
      return;
    }
    const startedMs = performance.now();
    try {
      const { runs } = await client.call('runs:list', {
        ...(text !== '' && { search: text }),
        archived: where === 'archive',
        deleted: where === 'deleted',
      });
      if (mine !== asked) return;
      answer.value = where === 'archive' ? runs.filter((run) => run.archived) : runs;
      tookMs.value = performance.now() - startedMs;
      error.value = undefined;
    } catch (reason) {
      if (mine !== asked) return;
      const body = errorInWindow(reason);
      // What was found before stays while the search is being written.
      if (body.code === 'badSearch') error.value = body;
      else notices.fail('Searching the runs', reason);
    }
  }
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => void ask(), typingMs);
  };
  watch([query, shelf], soon);
  watch(() => store.all, soon);

  const runs = computed(() => {
    const base = shelf.value === 'going' ? store.going : store.all;
    if (answer.value === undefined) return base;
    if (shelf.value === 'archive' || shelf.value === 'deleted') return answer.value;
    const ids = new Set(answer.value.map((run) => run.id));
    // The store's own records are the live ones.
    return base.filter((run) => ids.has(run.id));
  });

  async function readSearches(): Promise<void> {
    searches.value = await client
      .call('runs:searches', {})
      .then((result) => result.searches)
      .catch(() => []);
  }
  async function keepSearch(name: string, text: string): Promise<void> {
    try {
      await client.call('runs:save-search', { name, query: text });
    } catch (reason) {
      notices.fail('The search was not kept', reason);
    }
    await readSearches();
  }
  void readSearches();

  return { query, shelf, error, tookMs, runs, searches, keepSearch, ask };
}
