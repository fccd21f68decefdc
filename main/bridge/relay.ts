import { TesseraError, toErrorBody } from '../contract/errors.ts';
import type { ClientFrame, Port, ServerFrame } from '../contract/port.ts';

export interface Relay {
  fromPage: (frame: ClientFrame) => void;
  /** This process's end of the page's link, for `serve`. */
  hostPort: Port;
  close: () => void;
}

export interface RelayOptions {
  toPage: (frame: ServerFrame) => void;
  /** Opens the page's own link to the core, at its first call and again after the core was lost. */
  openCore: () => Promise<Port>;
}

/** Sends each frame of one page to the server it is for, and answers for a core that is not there. */
export function createRelay({ toPage, openCore }: RelayOptions): Relay {
  const target = new Map<number, 'host' | 'core'>();
  let hostFrame: ((frame: unknown) => void) | undefined;
  let hostClose: (() => void) | undefined;
  let core: Port | undefined;
  let opening: Promise<void> | undefined;
  let isClosed = false;
  const early: unknown[] = [];

  const answer = (frame: ServerFrame) => {
    if (frame.kind === 'result' || frame.kind === 'error') target.delete(frame.id);
    if (!isClosed) toPage(frame);
  };

  const failAll = (error: unknown) => {
    const body = toErrorBody(error);
    for (const [id, where] of [...target]) if (where === 'core') answer({ kind: 'error', id, error: body });
  };

  async function open(): Promise<void> {
    try {
      const port = await openCore();
      core = port;
      port.start(
        (frame) => {
          answer(frame as ServerFrame);
        },
        () => {
          core = undefined;
          failAll(
            new TesseraError(
              'coreLost',
              'The core went away while it was working on this.',
              'Start it again.',
            ),
          );
        },
      );
      if (isClosed) port.close();
    } catch (error) {
      failAll(error);
    } finally {
      opening = undefined;
    }
  }

  async function toCore(frame: ClientFrame): Promise<void> {
    if (core === undefined && frame.kind === 'call') {
      opening ??= open();
    }
    await opening;
    if (target.has(frame.id)) core?.send(frame);
  }

  return {
    fromPage: (frame) => {
      if (isClosed) return;
      if (frame.kind === 'call') target.set(frame.id, frame.channel.startsWith('host:') ? 'host' : 'core');
      const where = target.get(frame.id);
      if (where === 'core') void toCore(frame);
      else if (where === 'host') {
        if (hostFrame === undefined) early.push(frame);
        else hostFrame(frame);
      }
    },
    hostPort: {
      send: (frame) => {
        answer(frame as ServerFrame);
      },
      start: (onFrame, onClose) => {
        hostFrame = onFrame;
        hostClose = onClose;
        for (const frame of early) onFrame(frame);
      },
      close: () => undefined,
    },
    close: () => {
      if (isClosed) return;
      isClosed = true;
      core?.close();
      hostClose?.();
    },
  };
}
