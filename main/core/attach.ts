import { fork } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createClient } from '../contract/client.ts';
import { fromErrorBody, TesseraError, type ErrorBody } from '../contract/errors.ts';
import { contract, type CoreClient } from '../contract/index.ts';
import type { Port } from '../contract/port.ts';
import { openHome, type Home } from './home.ts';
import { listInheritable } from './inheritedFiles.ts';
import { socketPort } from './ports.ts';

/** How the core is started: the Node 24 and the entry file it runs by. */
export interface CoreProgram {
  node: string;
  entry: string;
}

const ownProgram: CoreProgram = { node: process.execPath, entry: join(import.meta.dirname, 'main.ts') };
const startLimitMs = 20_000;
const retryMs = 50;

/**
 * Attaches to the core of a home, starting one where none runs. Several programs may do so at once: the lock
 * picks one core, and the losers' callers find its socket.
 * @throws {TesseraError} what the core said when it could not start (`databaseFromFuture`, `homeNotWritable`, …)
 */
export async function attachCore(homePath: string): Promise<CoreClient> {
  return createClient(contract, await attachPort(homePath));
}

/** The bare link of `attachCore`, for a program that only passes frames on or runs in another Node (Electron's). */
export async function attachPort(homePath: string, program: CoreProgram = ownProgram): Promise<Port> {
  const home = openHome(homePath);
  const deadline = performance.now() + startLimitMs;
  let port = await tryConnect(home.socket);
  while (port === undefined) {
    const failed = await startDetached(home, program);
    if (failed !== undefined && failed.code !== 'homeInUse') throw fromErrorBody(failed);
    port = await tryConnect(home.socket);
    if (port === undefined && performance.now() > deadline) {
      throw new TesseraError(
        'coreSilent',
        `the core of ${home.root} does not answer`,
        `Its log is ${home.log}.`,
      );
    }
    if (port === undefined) await new Promise((resolve) => setTimeout(resolve, retryMs));
  }
  return port;
}

/** The client of a core that runs, or undefined. */
export async function findCore(homePath: string): Promise<CoreClient | undefined> {
  const port = await tryConnect(openHome(homePath).socket);
  return port === undefined ? undefined : createClient(contract, port);
}

/** A link to a core that has answered, or undefined where there is none or the one that took the link is dying. */
async function tryConnect(path: string): Promise<Port | undefined> {
  const socket = await new Promise<Socket | undefined>((resolve) => {
    const attempt = connect(path);
    attempt.once('connect', () => {
      attempt.removeAllListeners('error');
      resolve(attempt);
    });
    attempt.once('error', () => {
      resolve(undefined);
    });
  });
  return socket && greet(socketPort(socket));
}

/** No client of ours counts its calls so far. */
const greetingId = Number.MAX_SAFE_INTEGER;

/** The system takes links in the name of a process that it is about to end: only an answer tells that a core is there. */
function greet(port: Port): Promise<Port | undefined> {
  const early: unknown[] = [];
  let onFrame = (frame: unknown): void => void early.push(frame);
  let onClose: ((reason?: Error) => void) | undefined;
  let ended: { reason: Error | undefined } | undefined;
  const greeted: Port = {
    ...port,
    start: (take, close) => {
      onFrame = take;
      onClose = close;
      for (const frame of early.splice(0)) take(frame);
      if (ended !== undefined) close(ended.reason);
    },
  };
  return new Promise((resolve) => {
    port.start(
      (frame) => {
        if ((frame as { id?: unknown } | null)?.id === greetingId) resolve(greeted);
        else onFrame(frame);
      },
      (reason) => {
        ended = { reason };
        onClose?.(reason);
        resolve(undefined);
      },
    );
    port.send({ kind: 'call', id: greetingId, channel: 'system:info', args: {} });
  });
}

/** Resolves to undefined once the core is ready, or to why it is not. It outlives this process. */
function startDetached(home: Home, program: CoreProgram): Promise<ErrorBody | undefined> {
  return new Promise((resolve) => {
    const child = fork(program.entry, ['--home', home.root, '--close', listInheritable()], {
      execPath: program.node,
      execArgv: [],
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    // Kept until it has answered: its end could otherwise find nobody who still waits for it.
    const settle = (failed?: ErrorBody) => {
      child.unref();
      resolve(failed);
    };
    child.once('message', (message: { ready?: true; failed?: ErrorBody }) => {
      settle(message.failed);
    });
    child.once('error', (error) => {
      settle({ code: 'coreStart', message: `the core could not be started: ${error.message}` });
    });
    child.once('exit', (code, signal) => {
      settle({
        code: 'coreStart',
        message: `the core ended at its start (${signal ?? String(code)})`,
        hint: `Its log is ${home.log}.`,
      });
    });
  });
}
