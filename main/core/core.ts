import { rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { contract } from '../contract/index.ts';
import type { Port } from '../contract/port.ts';
import { serve } from '../contract/server.ts';
import { createWork, type CoreContext } from './context.ts';
import { createHandlers } from './handlers.ts';
import { openHistory } from './history.ts';
import { openHome } from './home.ts';
import { isAlive, takeLock } from './lock.ts';
import { openLog } from './log.ts';
import { socketPort } from './ports.ts';
import { readOnlyWhere } from './readOnly.ts';

export interface CoreOptions {
  home: string;
  /** How long the core stays with nobody attached and nothing to do. */
  graceMs: number;
  onClosed?: () => void;
}

export interface Core {
  /** Serves one more client, over whatever link it came. */
  attach: (port: Port) => void;
  close: (why: string) => Promise<void>;
}

const closeLimitMs = 20_000;
/** Long enough for the answer to go out. */
const closeSoonMs = 100;

/** Order: home, lock, log, database, handlers, socket. Closing goes the other way. */
export async function startCore(options: CoreOptions): Promise<Core> {
  const home = openHome(options.home);
  const lock = takeLock(home);
  const log = openLog(home.log);
  if (lock.previous !== undefined && !isAlive(lock.previous)) {
    log(`took over from core ${String(lock.previous.pid)}, which died`);
  }
  const closers: (() => void | Promise<void>)[] = [];
  let numClients = 0;
  let timer: NodeJS.Timeout | undefined;
  let closing: Promise<void> | undefined;

  const settle = () => {
    clearTimeout(timer);
    if (numClients > 0 || work.names().length > 0 || closing !== undefined) return;
    timer = setTimeout(() => void close('nobody attached, nothing to do'), options.graceMs);
  };
  const work = createWork(settle);

  const close = (why: string): Promise<void> => {
    closing ??= (async () => {
      log(`closing: ${why}`);
      clearTimeout(timer);
      for (const closer of closers.reverse()) await within(closeLimitMs, closer, log);
      log('closed');
      options.onClosed?.();
    })();
    return closing;
  };

  closers.push(() => {
    lock.release();
  });
  try {
    const diedBefore = lock.previous !== undefined && !isAlive(lock.previous);
    const history = await openHistory(home.database, log, diedBefore);
    const { db } = history;
    closers.push(() => {
      db.close();
    });
    const context: CoreContext = {
      ...{ home, db, history, log, work },
      closeSoon: (why) => setTimeout(() => void close(why), closeSoonMs),
      onClose: (closer) => void closers.push(closer),
    };
    const handlers = readOnlyWhere(history.trouble, createHandlers(context));

    const attach = (port: Port) => {
      numClients += 1;
      settle();
      serve(contract, handlers, port, {
        onClose: () => {
          numClients -= 1;
          settle();
        },
        onFault: (channel, error) => {
          log(`${channel}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
        },
      });
    };
    closers.push(await listen(home.socket, attach));
    log(`core ready on ${home.socket}`);
    settle();
    return { attach, close };
  } catch (error) {
    for (const closer of closers.reverse()) await closer();
    throw error;
  }
}

/** Resolves to what closes the socket and every link through it. */
function listen(path: string, attach: (port: Port) => void): Promise<() => Promise<void>> {
  // The lock is ours, so a socket file that is there was left by a core that died.
  if (process.platform !== 'win32') rmSync(path, { force: true });
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    attach(socketPort(socket));
  });
  return new Promise((resolve, reject) => {
    const mask = process.umask(0o177);
    server.once('error', reject);
    server.listen(path, () => {
      process.umask(mask);
      resolve(close);
    });
  });

  function close(): Promise<void> {
    return new Promise((resolve) => {
      server.close(() => {
        resolve();
      });
      for (const socket of sockets) socket.destroySoon();
    });
  }
}

async function within(
  limitMs: number,
  closer: () => void | Promise<void>,
  log: (message: string) => void,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      log('something did not close in time');
      resolve();
    }, limitMs);
  });
  try {
    await Promise.race([limit, closer()]);
  } catch (error) {
    log(`while closing: ${String(error)}`);
  } finally {
    clearTimeout(timer);
  }
}
