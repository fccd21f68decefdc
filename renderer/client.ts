import { appContract, type AppClient } from '../main/contract/app.ts';
import type { TesseraBridge } from '../main/contract/bridge.ts';
import { createClient } from '../main/contract/client.ts';

declare global {
  interface Window {
    /** What the preload script gives to this page; `main/preload.ts` says what each does. */
    tessera: TesseraBridge;
  }
}

/** The one client of this page: `client.call('runs:list', {})`, `client.subscribe('host:core-state', …)`. */
export const client: AppClient = createClient(appContract, {
  send: (frame) => {
    window.tessera.send(frame);
  },
  start: (onFrame) => {
    window.tessera.onFrame(onFrame);
  },
  close: () => undefined,
});
