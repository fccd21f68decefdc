import { client } from '../client.ts';
import { useNoticeStore } from '../stores/noticeStore.ts';

/** Saves a file where the person says, and tells where it lies now. `title`: what was done, `Chart saved`. */
export function useSaveFile(): (
  title: string,
  suggestedName: string,
  content: string | Uint8Array<ArrayBuffer>,
) => Promise<void> {
  const notices = useNoticeStore();
  return async (title, suggestedName, content) => {
    const { path } = await client.call('host:save-file', { suggestedName, content });
    if (path === undefined) return;
    const run = () => void client.call('host:reveal', { path });
    notices.note(title, { detail: path, action: { label: 'Show in folder', run } });
  };
}
