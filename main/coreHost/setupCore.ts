import { existsSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { app } from 'electron';
import type { AppContext } from '../appContext.ts';
import { createClient } from '../contract/client.ts';
import { fromErrorBody, TesseraError, toErrorBody } from '../contract/errors.ts';
import type { CoreClient } from '../contract/index.ts';
import type { Port } from '../contract/port.ts';
import type { CoreProgram } from '../core/attach.ts';
import { nextValue } from '../observable.ts';
import { markStart } from '../startMarks.ts';

/** By then the core starts, page or none. */
const pageLimitMs = 3000;

/**
 * Starts the core, or attaches to the one that runs in this home, and watches that link for as long as the program
 * lives: it is what tells the windows whether there is a core. Each window has a link of its own (bridge/). The first
 * start waits for the page: on two cores, two programs that start together keep the person waiting for both.
 */
export function setupCore(context: AppContext): void {
  const log = join(context.home, 'core.log');
  let attempt = 0;
  const start = async () => {
    const mine = (attempt += 1);
    context.coreState.set({ kind: 'starting' });
    try {
      const [{ contract }, port] = await Promise.all([import('../contract/index.ts'), attach(context)]);
      const client = createClient(contract, port);
      await checkVersion(client);
      context.core.set(client);
      markStart('core ready');
      context.coreState.set({ kind: 'ready' });
      await client.closed;
      throw new TesseraError(
        'coreEnded',
        'The core ended unexpectedly.',
        'Start it again; runs that were going can be resumed.',
      );
    } catch (error) {
      if (mine !== attempt || context.isQuitting) return;
      context.core.set(undefined);
      context.coreState.set({ kind: 'lost', error: toErrorBody(error), log });
    }
  };
  context.restartCore = () => {
    context.core.get()?.close();
    void start();
  };
  const limit = new Promise((resolve) => setTimeout(resolve, pageLimitMs));
  void Promise.race([nextValue(context.isPageUsable, Boolean), limit]).then(start);
}

// Loaded when first needed: the core's whole contract has no part in opening the window.
async function attach(context: AppContext): Promise<Port> {
  const { attachPort } = await import('../core/attach.ts');
  const program = coreProgram();
  const missing = [program.entry, ...(isAbsolute(program.node) ? [program.node] : [])].find(
    (path) => !existsSync(path),
  );
  if (missing !== undefined) {
    throw new TesseraError(
      'coreMissing',
      `This Tessera is not whole: ${missing} is not there.`,
      app.isPackaged
        ? 'Install it again. Your runs and datasets are elsewhere and stay as they are.'
        : 'Fetch the repository anew, then run npm start.',
    );
  }
  return attachPort(context.home, program);
}

/** A link of a window's own to the core that `setupCore` keeps. @throws what that core was lost to */
export async function openCorePort(context: AppContext): Promise<Port> {
  const state = await nextValue(context.coreState, ({ kind }) => kind !== 'starting');
  if (state.kind === 'lost') throw fromErrorBody(state.error);
  return attach(context);
}

/** Another installation's core may be at work in this home: the two would not understand one another. */
async function checkVersion(client: CoreClient): Promise<void> {
  const { version, pid } = await client.call('system:info', {}).catch((error: unknown) => {
    client.close();
    throw error;
  });
  if (version === app.getVersion()) return;
  client.close();
  throw new TesseraError(
    'coreVersion',
    `A core of version ${version} (process ${String(pid)}) works in this home; this window is version ${app.getVersion()}.`,
    'It ends by itself once its runs have ended and nothing else is attached to it. Close the other Tessera, then start the core again.',
  );
}

/** The Node 24 and the entry that the core runs by: from the repository in development, from the resources when packaged. */
export function coreProgram(): CoreProgram {
  const system = process.platform === 'win32' ? 'win' : process.platform;
  const name = system === 'win' ? 'node.exe' : 'node';
  if (app.isPackaged) {
    return {
      node: join(process.resourcesPath, 'node', name),
      entry: join(process.resourcesPath, 'core', 'main', 'core', 'main.ts'),
    };
  }
  const root = app.getAppPath();
  const shipped = join(root, 'node_modules', `node-${system}-${process.arch}`, 'bin', name);
  return { node: existsSync(shipped) ? shipped : 'node', entry: join(root, 'main/core/main.ts') };
}
