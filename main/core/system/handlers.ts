import type { Handlers } from '../../contract/channel.ts';
import type { systemChannels } from '../../contract/system.ts';
import type { CoreContext } from '../context.ts';
import { examine } from './doctor.ts';
import { version } from '../version.ts';

export function systemHandlers({ home, work }: CoreContext): Handlers<typeof systemChannels> {
  const startedAtMs = Date.now();
  return {
    'system:info': () => ({ version, pid: process.pid, home: home.root, startedAtMs, work: work.names() }),
    'system:doctor': () => examine(home),
  };
}
