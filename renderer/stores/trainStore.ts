import { defineStore } from 'pinia';
import { computed, ref, shallowRef, watch } from 'vue';
import type { Progress } from '../../main/contract/channel.ts';
import type { ErrorBody } from '../../main/contract/errors.ts';
import { issueWords } from '../../main/contract/issueWords.ts';
import { recipeSchema, type RecipeInput } from '../../main/contract/recipe.ts';
import type { Preflight, RunSummary } from '../../main/contract/runs.ts';
import { client } from '../client.ts';
import { useCoreStore } from './coreStore.ts';
import { errorInWindow } from '../errorInWindow.ts';
import { percent } from '../format.ts';
import { useNoticeStore } from './noticeStore.ts';

const draftKey = 'tessera.draft';
const settleMs = 500;
const starter: RecipeInput = {
  name: 'my first run',
  model: 'bundled',
  dataset: 'bundled',
  evalShare: 0.1,
  packing: { budget: 2048 },
};

/** The recipe that is being written, kept between starts, and what the core says of it. */
export const useTrainStore = defineStore('train', () => {
  const core = useCoreStore();
  const notices = useNoticeStore();
  const recipe = shallowRef<RecipeInput>(readDraft());
  const preflight = shallowRef<Preflight>();
  const problem = shallowRef<ErrorBody>();
  const isChecking = ref(false);
  /** What the check is at: `Timing steps, 40 %`. */
  const checking = ref<string>();
  const checkedAtMs = ref(0);
  let timer: ReturnType<typeof setTimeout> | undefined;
  let abort: AbortController | undefined;

  /** Faults of single fields, by path: they need no core. */
  const faults = computed(() => {
    const parsed = recipeSchema.safeParse(recipe.value);
    return new Map((parsed.error?.issues ?? []).map((issue) => [issue.path.join('.'), issueWords(issue)]));
  });

  async function check(): Promise<void> {
    abort?.abort();
    abort = new AbortController();
    const { signal } = abort;
    isChecking.value = true;
    checking.value = undefined;
    const onProgress = ({ what, done, total }: Progress) => {
      if (signal.aborted) return;
      checking.value = total === undefined ? what : `${what}, ${percent(Math.min(1, done / total), 0)}`;
    };
    try {
      const result = await client.call('runs:preflight', { recipe: recipe.value }, { signal, onProgress });
      if (signal.aborted) return;
      preflight.value = result;
      problem.value = undefined;
    } catch (error) {
      if (signal.aborted) return;
      problem.value = errorInWindow(error);
    } finally {
      if (!signal.aborted) {
        isChecking.value = false;
        checkedAtMs.value = Date.now();
      }
    }
  }

  // A recipe that nobody has written yet begins with what the settings say.
  let isUntouched = localStorage.getItem(draftKey) === null;
  watch(
    () => core.epoch,
    async (epoch) => {
      if (epoch !== 1) return;
      const { defaults } = (await client.call('settings:get', {})).settings;
      if (!isUntouched) return;
      const { device, budget, lr, evalShare } = defaults;
      recipe.value = {
        ...recipe.value,
        ...(device !== undefined && { device }),
        ...(evalShare !== undefined && { evalShare }),
        ...(budget !== undefined && { packing: { ...recipe.value.packing, budget } }),
        ...(lr !== undefined && { optimizer: { ...recipe.value.optimizer, lr } }),
      };
    },
    { immediate: true },
  );

  watch(
    [recipe, () => core.epoch],
    () => {
      localStorage.setItem(draftKey, JSON.stringify(recipe.value));
      clearTimeout(timer);
      if (core.epoch === 0 || faults.value.size > 0) return;
      isChecking.value = true;
      timer = setTimeout(() => void check(), settleMs);
    },
    { immediate: true },
  );

  return {
    recipe,
    faults,
    preflight,
    problem,
    isChecking,
    checking,
    checkedAtMs,
    check,
    set: (next: RecipeInput) => {
      recipe.value = next;
    },
    /** Takes a whole other recipe, and says so under `title`; the one that was there comes back with Undo. */
    replace: (next: RecipeInput, title: string, { detail }: { detail: string }) => {
      const before = recipe.value;
      isUntouched = false;
      recipe.value = next;
      const run = () => {
        recipe.value = before;
      };
      notices.note(title, { detail, action: { label: 'Undo', run } });
    },
    start: async (): Promise<RunSummary> => (await client.call('runs:create', { recipe: recipe.value })).run,
  };
});

function readDraft(): RecipeInput {
  try {
    return { ...starter, ...(JSON.parse(localStorage.getItem(draftKey) ?? '{}') as Partial<RecipeInput>) };
  } catch {
    return starter;
  }
}
