import { join } from 'node:path';
import type { Handlers } from '../../contract/channel.ts';
import type { systemChannels } from '../../contract/system.ts';
import type { CoreContext } from '../context.ts';
import { copyHistory, isHeld, mendHistory } from '../history.ts';
import { examine, measureDevice } from './doctor.ts';
import { version } from '../version.ts';

export function systemHandlers(context: CoreContext): Handlers<typeof systemChannels> {
  const { home, history, work } = context;
  const startedAtMs = Date.now();
  return {
    'system:info': () => ({
      ...{ version, pid: process.pid, home: home.root, startedAtMs, work: work.names() },
      ...(history.trouble && { historyTrouble: history.trouble }),
    }),
    'system:copy-history': async ({ folder }) => {
      const stamp = new Date().toISOString().slice(0, 19).replaceAll(':', '');
      const path = join(folder, `tessera-history-${stamp}.sqlite`);
      return { path, ...(await copyHistory(history, path)) };
    },
    'system:mend-history': async () => {
      const mended = await mendHistory(history);
      context.closeSoon('the history was mended');
      return mended;
    },
    'system:reopen-history': () => {
      if (history.trouble === undefined) return { isHeld: false };
      if (history.trouble.code === 'historyLocked' && isHeld(history.path)) return { isHeld: true };
      context.closeSoon('the history is to be opened again');
      return { isHeld: false };
    },
    'system:doctor': () => examine(home),
    'system:measure': ({ device }, { signal }) => measureDevice(device, signal),
  };
}
