import { closeSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';

const closeOnExec = 0o2000000;
/** Behind standard input, output, error, and the channel between parent and child. */
const first = 4;

/**
 * The files of this process that a child would inherit, for `closeInherited` there. Electron leaves its display, its
 * pipes and whatever it was started with open in its children: a core that outlives it would hold them, and whoever
 * waits for their end would wait for the core. Node's own files close by themselves; Linux only, elsewhere they cannot
 * be told apart.
 */
export function listInheritable(): string {
  if (process.platform !== 'linux') return '[]';
  const open = readdirSync('/proc/self/fd').map(Number);
  return JSON.stringify(open.flatMap((fd) => (fd >= first && isInheritable(fd) ? [[fd, fileOf(fd)]] : [])));
}

/** In the child. A number that its parent gave back meanwhile is another file's here: that stays open. */
export function closeInherited(list: string): void {
  for (const [fd, file] of JSON.parse(list) as [number, string][])
    if (file !== '' && fileOf(fd) === file) closeSync(fd);
}

function isInheritable(fd: number): boolean {
  try {
    const flags = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${String(fd)}`, 'utf8'))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0;
  } catch {
    // The file of the listing itself, closed by now.
    return false;
  }
}

/** What the system calls it: `/home/…`, `pipe:[4711]`; empty where it is closed. */
function fileOf(fd: number): string {
  try {
    return readlinkSync(`/proc/self/fd/${String(fd)}`);
  } catch {
    return '';
  }
}
