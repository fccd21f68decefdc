import { fork } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createClient } from '../contract/client.ts';
import { fromErrorBody, TesseraError, type ErrorBody } from '../contract/errors.ts';
import { contract, type CoreClient } from '../contract/index.ts';
import type { Port } from '../contract/port.ts';
import { openHome, type Home } from './home.ts';
import { shutInheritedFiles } from './inheritedFiles.ts';
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
  let socket = await tryConnect(home.socket);
  while (socket === undefined) {
    const failed = await startDetached(home, program);
    if (failed !== undefined && failed.code !== 'homeInUse') throw fromErrorBody(failed);
    socket = await tryConnect(home.socket);
    if (socket === undefined && performance.now() > deadline) {
      throw new TesseraError(
        'coreSilent',
        `the core of ${home.root} does not answer`,
        `Its log is ${home.log}.`,
      );
    }
    if (socket === undefined) await new Promise((resolve) => setTimeout(resolve, retryMs));
  }
  return socketPort(socket);
}

/** The client of a core that runs, or undefined. */
export async function findCore(homePath: string): Promise<CoreClient | undefined> {
  const socket = await tryConnect(openHome(homePath).socket);
  return socket === undefined ? undefined : createClient(contract, socketPort(socket));
}

function tryConnect(path: string): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.removeAllListeners('error');
      resolve(socket);
    });
    socket.once('error', () => {
      resolve(undefined);
    });
  });
}

/** Resolves to undefined once the core is ready, or to why it is not. It outlives this process. */
function startDetached(home: Home, program: CoreProgram): Promise<ErrorBody | undefined> {
  return new Promise((resolve) => {
    const shut = shutInheritedFiles();
    const child = fork(program.entry, ['--home', home.root], {
      execPath: program.node,
      execArgv: [],
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc', ...shut.stdio],
    });
    shut.done();
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
