import { shallowRef } from 'vue';
import type { FilePreview } from '../../../main/contract/datasets.ts';
import { client } from '../../client.ts';

/** The first rows of files, read at once; `problem` is what kept them from being read. Of no paths there are none. */
export function usePreview(paths: readonly string[] = []) {
  const preview = shallowRef<FilePreview>();
  const problem = shallowRef<unknown>();
  async function look(): Promise<void> {
    if (paths.length === 0) return;
    try {
      preview.value = await client.call('datasets:preview', { paths: [...paths] });
    } catch (error) {
      problem.value = error;
    }
  }
  void look();
  return { preview, problem };
}
