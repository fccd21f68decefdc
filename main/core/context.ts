import type { Db } from '../../db/connection.ts';
import type { History } from './history.ts';
import type { Home } from './home.ts';
import type { Log } from './log.ts';

/** What every capability gets. */
export interface CoreContext {
  home: Home;
  db: Db;
  history: History;
  log: Log;
  /** Work that keeps the core alive with no client attached: `const done = work.begin('import chats')`. */
  work: Work;
  /** Ends this core soon; whoever needs one starts the next. */
  closeSoon: (why: string) => void;
  /** Runs when the core closes, last registered first; each has at most a few seconds. */
  onClose: (close: () => void | Promise<void>) => void;
}

export interface Work {
  begin: (name: string) => () => void;
  names: () => string[];
}

export function createWork(onChange: () => void): Work {
  const active = new Map<symbol, string>();
  return {
    begin: (name) => {
      const key = Symbol(name);
      active.set(key, name);
      onChange();
      return () => {
        if (active.delete(key)) onChange();
      };
    },
    names: () => [...active.values()],
  };
}
