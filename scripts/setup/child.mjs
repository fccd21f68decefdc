// The program that a step runs leads a process group of its own, so that it ends whole, with its compilers and
// downloads: on Ctrl-C, at its time limit, and, where set-up itself was killed, before the next set-up begins.
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stateDir } from './paths.mjs';

const recordFile = join(stateDir, 'setup.child');
let current;
let afterwards = () => {};

/** Like child_process.spawn; the group is on record until it ends. */
export function spawnGroup(command, args, options) {
  const child = spawn(command, args, { ...options, detached: process.platform !== 'win32' });
  if (child.pid === undefined) return child;
  current = child.pid;
  mkdirSync(stateDir, { recursive: true });
  writeFileSync(recordFile, `${child.pid} ${startOf(child.pid)}`);
  child.on('close', () => {
    current = undefined;
    rmSync(recordFile, { force: true });
    afterwards();
  });
  return child;
}

/** Asks the group of the program at work in this process to end, if there is one; `then` is called once it has. */
export function endCurrentGroup(then = () => {}) {
  if (current === undefined) return then();
  afterwards = then;
  const pid = current;
  signalGroup(pid, 'SIGTERM');
  setTimeout(() => signalGroup(pid, 'SIGKILL'), 5000).unref();
}

/** Ends the group that a killed set-up left at work, if it still is, and returns once it has ended. */
export async function endOrphanedGroup() {
  let record;
  try {
    record = readFileSync(recordFile, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return;
    throw error;
  }
  const [pid, start] = record.split(' ');
  // A process id may since belong to somebody else; its start time does not.
  if (start === '' || startOf(pid) !== start) return;
  // The build tool ends its compilers, each in a group of its own, where it is asked; killed, it leaves them behind.
  signalGroup(Number(pid), 'SIGTERM');
  for (let waits = 0; signalGroup(Number(pid), 0) && waits < 50; waits++)
    await new Promise((resolve) => setTimeout(resolve, 100));
  signalGroup(Number(pid), 'SIGKILL');
}

function signalGroup(pid, signal) {
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, signal);
    return true;
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
    return false;
  }
}

/** When a process started, in the kernel's ticks; '' where that cannot be known. */
function startOf(pid) {
  try {
    // The second field is the program's name in brackets and may hold spaces.
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ')[19];
  } catch {
    return '';
  }
}
