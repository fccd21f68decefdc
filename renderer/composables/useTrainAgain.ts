import { useRouter } from 'vue-router';
import { recipeSchema } from '../../main/contract/recipe.ts';
import { client } from '../client.ts';
import { nextName } from '../nextName.ts';
import { useNoticeStore } from '../stores/noticeStore.ts';
import { useRunsStore } from '../stores/runsStore.ts';
import { useTrainStore } from '../stores/trainStore.ts';

/** Opens a run's recipe in *Train*, under a name that no run has yet; the recipe that was there comes back with Undo. */
export function useTrainAgain(): (id: string) => Promise<void> {
  const router = useRouter();
  const runs = useRunsStore();
  const notices = useNoticeStore();
  return async (id) => {
    try {
      const { run } = await client.call('runs:show', { id });
      const name = nextName(run.name, new Set(runs.all.map((one) => one.name)));
      // Only now: a recipe that is there is checked at once.
      const train = useTrainStore();
      train.replace({ ...recipeSchema.parse(run.recipe), name }, `Recipe of ${run.name}`, {
        detail: 'Change what should differ, then start.',
      });
      await router.push({ name: 'train' });
    } catch (error) {
      notices.fail('The recipe could not be opened', error);
    }
  };
}
