import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { app } from 'electron';
import type { AppContext } from '../appContext.ts';
import { toErrorBody } from '../contract/errors.ts';
import type { CoreState } from '../contract/host.ts';
import { attachPort, type CoreProgram } from '../core/attach.ts';
import { watchPort } from './watchPort.ts';

/**
 * Starts the core, or attaches to the one that runs in this home, and watches that link for as long as the program
 * lives: it is what tells the windows whether there is a core. Each window has a link of its own (bridge/).
 */
export function setupCore(context: AppContext): void {
  const log = join(context.home, 'core.log');
  let attempt = 0;
  const start = async () => {
    const mine = (attempt += 1);
    context.coreState.set({ kind: 'starting' });
    const lost = (error: unknown): CoreState => ({ kind: 'lost', error: toErrorBody(error), log });
    try {
      const port = await attachPort(context.home, coreProgram());
      context.coreState.set({ kind: 'ready' });
      await watchPort(port);
      if (mine !== attempt || context.isQuitting) return;
      context.coreState.set({
        kind: 'lost',
        error: {
          code: 'coreEnded',
          message: 'The core ended unexpectedly.',
          hint: 'Start it again; runs that were going can be resumed.',
        },
        log,
      });
    } catch (error) {
      if (mine === attempt) context.coreState.set(lost(error));
    }
  };
  context.restartCore = () => void start();
  void start();
}

/** The Node 24 and the entry that the core runs by: from the repository in development, from the resources when packaged. */
export function coreProgram(): CoreProgram {
  if (app.isPackaged) {
    const name = process.platform === 'win32' ? 'node.exe' : 'node';
    return {
      node: join(process.resourcesPath, 'node', name),
      entry: join(process.resourcesPath, 'core', 'main.js'),
    };
  }
  const root = app.getAppPath();
  const system = process.platform === 'win32' ? 'win' : process.platform;
  const shipped = join(
    root,
    'node_modules',
    `node-${system}-${process.arch}`,
    'bin',
    system === 'win' ? 'node.exe' : 'node',
  );
  return { node: existsSync(shipped) ? shipped : 'node', entry: join(root, 'main/core/main.ts') };
}
