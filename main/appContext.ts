import { accessSync, constants, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { app } from 'electron';
import type { CoreState, MenuCommand } from './contract/host.ts';
import type { CoreClient } from './contract/index.ts';
import type { RunSummary } from './contract/runs.ts';
import { defaultHome } from './core/homeFolder.ts';
import { makeFolder } from './core/makeFolder.ts';
import { createTopic, createValue, type Topic, type Value } from './observable.ts';
import { openSettings, type Settings } from './settings.ts';

/** What the capabilities of the main process share. */
export interface AppContext {
  home: string;
  settings: Settings;
  coreState: Value<CoreState>;
  /** True once a page can be used: painted, and free for a click. */
  isPageUsable: Value<boolean>;
  /** This process's own link to the core, while there is one. */
  core: Value<CoreClient | undefined>;
  /** Asks for the core again after it was lost. */
  restartCore: () => void;
  incomingFiles: Topic<string[]>;
  menuCommands: Topic<MenuCommand>;
  /** Routes that a notification or the tray asks a window to show. */
  routes: Topic<string>;
  /** Brings a window to the front, opening one where none is. */
  showWindow: (route?: string) => void;
  activeRuns: Value<ActiveRun[]>;
  /** Runs as they end, for better or worse. */
  endedRuns: Topic<RunSummary>;
  /** Finishes the step of every run that is going and saves; resolves when all have ended. */
  stopRuns: () => Promise<void>;
  /** True from the moment the person has decided to quit. */
  isQuitting: boolean;
}

export interface ActiveRun {
  id: string;
  name: string;
}

export function createAppContext(): AppContext {
  const home = homeFromArguments(process.argv) ?? defaultHome();
  app.setPath('userData', windowFolder(home));
  return {
    home,
    settings: openSettings(join(home, 'window.json')),
    coreState: createValue<CoreState>({ kind: 'starting' }),
    isPageUsable: createValue(false),
    restartCore: () => undefined,
    core: createValue<CoreClient | undefined>(undefined),
    incomingFiles: createTopic<string[]>(),
    menuCommands: createTopic<MenuCommand>(),
    routes: createTopic<string>(),
    showWindow: () => undefined,
    activeRuns: createValue<ActiveRun[]>([]),
    endedRuns: createTopic<RunSummary>(),
    stopRuns: () => Promise.resolve(),
    isQuitting: false,
  };
}

/**
 * A home of its own is an app of its own: its window state and its single instance go with it. A home that cannot be
 * written is for the core to explain, so the window that shows the explanation keeps its files elsewhere.
 */
function windowFolder(home: string): string {
  const folder = join(home, 'window');
  try {
    makeFolder(folder);
    accessSync(folder, constants.W_OK);
    return folder;
  } catch {
    return mkdtempSync(join(tmpdir(), 'tessera-window-'));
  }
}

function homeFromArguments(argv: string[]): string | undefined {
  const index = argv.indexOf('--home');
  const inline = argv.find((argument) => argument.startsWith('--home='))?.slice('--home='.length);
  return inline ?? (index >= 0 ? argv[index + 1] : undefined);
}
