import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { devNull } from 'node:os';

const closeOnExec = 0o2000000;
const first = 4;

export interface Shut {
  /** Entries of a child's `stdio` from its fifth on. */
  stdio: ('ignore' | number)[];
  /** To be called once the child is there. */
  done: () => void;
}

/**
 * Keeps a child from inheriting this process's files. Electron leaves its display, its pipes and whatever it was
 * started with open in its children: a core that outlives it would hold them, and whoever waits for their end would
 * wait for the core. In the child each becomes the null device. Node's own files close by themselves; Linux only,
 * elsewhere they cannot be told apart.
 */
export function shutInheritedFiles(): Shut {
  if (process.platform !== 'linux') return { stdio: [], done: () => undefined };
  const open = readdirSync('/proc/self/fd').map(Number).filter(isInherited);
  if (open.length === 0) return { stdio: [], done: () => undefined };
  const nothing = openSync(devNull, 'r+');
  const stdio = Array.from({ length: Math.max(...open) + 1 - first }, (_, i) =>
    open.includes(first + i) ? nothing : ('ignore' as const),
  );
  return {
    stdio,
    done: () => {
      closeSync(nothing);
    },
  };
}

function isInherited(fd: number): boolean {
  if (fd < first) return false;
  try {
    const flags = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${String(fd)}`, 'utf8'))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0;
  } catch {
    // The file of the listing itself, closed by now.
    return false;
  }
}
