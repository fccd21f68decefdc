import { ipcMain, type IpcMainEvent, type WebContents } from 'electron';
import type { AppContext } from '../appContext.ts';
import { hostChannels } from '../contract/host.ts';
import { clientFrame } from '../contract/port.ts';
import { serve } from '../contract/server.ts';
import { openCorePort } from '../coreHost/setupCore.ts';
import { createHostHandlers } from '../host/hostHandlers.ts';
import { appOrigin } from '../protocol/setupProtocol.ts';
import { createRelay, type Relay } from './relay.ts';

/**
 * Joins each page to its two servers: this process for `host:` channels, the core for all others. Frames from
 * anything but the top frame of one of our own pages are refused, and so is what is no frame of the contract.
 */
export function setupBridge(context: AppContext): void {
  const relays = new Map<number, Relay>();

  ipcMain.on('tessera:frame', (event, raw: unknown) => {
    if (!isOwnPage(event)) {
      process.stderr.write(
        `[main ${process.pid}] frame refused: ${event.senderFrame?.url ?? 'a frame that is gone'} is not a page of ours\n`,
      );
      return;
    }
    const frame = clientFrame.safeParse(raw);
    if (!frame.success) return;
    relayOf(event.sender).fromPage(frame.data);
  });

  function relayOf(page: WebContents): Relay {
    const known = relays.get(page.id);
    if (known !== undefined) return known;
    const relay = createRelay({
      toPage: (frame) => {
        if (!page.isDestroyed()) page.send('tessera:frame', frame);
      },
      openCore: () => openCorePort(context),
    });
    relays.set(page.id, relay);
    serve(hostChannels, createHostHandlers(context, page), relay.hostPort, {
      onFault: (channel, error) =>
        process.stderr.write(`[main ${process.pid}] ${channel}: ${String(error)}\n`),
    });
    const end = () => {
      relay.close();
      relays.delete(page.id);
    };
    // A reloaded page numbers its calls anew: what the old one left open must not answer the new one.
    page.on('did-start-navigation', (details) => {
      if (details.isMainFrame && !details.isSameDocument && relays.get(page.id) === relay) end();
    });
    page.once('destroyed', end);
    page.once('render-process-gone', end);
    return relay;
  }
}

function isOwnPage(event: IpcMainEvent): boolean {
  const frame = event.senderFrame;
  return frame !== null && frame.parent === null && frame.url.startsWith(`${appOrigin}/`);
}
