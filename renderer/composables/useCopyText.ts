import { client } from '../client.ts';
import { useNoticeStore } from '../stores/noticeStore.ts';

/** Puts text on the clipboard and says so, with what it is good for. */
export function useCopyText(): (text: string, detail: string) => Promise<void> {
  const notices = useNoticeStore();
  return async (text, detail) => {
    await client.call('host:copy-text', { text });
    notices.note('Copied', { detail });
  };
}
