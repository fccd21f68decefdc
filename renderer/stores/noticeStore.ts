import { defineStore } from 'pinia';
import { ref } from 'vue';
import { TesseraError, type ErrorBody } from '../../main/contract/errors.ts';
import { errorInWindow } from '../errorInWindow.ts';

export interface Notice {
  id: number;
  kind: 'note' | 'error';
  title: string;
  detail?: string;
  error?: ErrorBody;
  action?: { label: string; run: () => void };
}

const noteLifeMs = 6000;

/** Short messages in the corner. Errors stay until they are closed. */
export const useNoticeStore = defineStore('notices', () => {
  const notices = ref<Notice[]>([]);
  let nextId = 1;
  const close = (id: number) => {
    notices.value = notices.value.filter((notice) => notice.id !== id);
  };
  const show = (notice: Omit<Notice, 'id'>) => {
    const id = nextId++;
    notices.value = [...notices.value.slice(-4), { ...notice, id }];
    if (notice.kind === 'note')
      setTimeout(() => {
        close(id);
      }, noteLifeMs);
  };
  return {
    notices,
    close,
    note: (title: string, extra: { detail?: string; action?: Notice['action'] } = {}) => {
      show({
        kind: 'note',
        title,
        ...(extra.detail !== undefined && { detail: extra.detail }),
        ...(extra.action !== undefined && { action: extra.action }),
      });
    },
    /** What the person tried (`Importing chats.jsonl`) and why it failed; being cancelled is no failure. */
    fail: (what: string, error: unknown) => {
      if (error instanceof TesseraError && error.code === 'cancelled') return;
      const body = errorInWindow(error);
      show({ kind: 'error', title: what, detail: body.message, error: body });
    },
  };
});
