// One set-up at a time in a checkout: a folder made atomically, with the holder's process id in it.
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { endCurrentGroup, endOrphanedGroup } from './child.mjs';
import { stateDir } from './paths.mjs';
import { say } from './report.mjs';

const lockDir = join(stateDir, 'setup.lock');
const pidFile = join(lockDir, 'pid');
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];

function holderIsAlive() {
  try {
    process.kill(Number(readFileSync(pidFile, 'utf8')), 0);
    return true;
  } catch (error) {
    if (error.code === 'EPERM') return true;
    // The folder is made a moment before the id is written: young and without one means somebody is just starting.
    if (error.code === 'ENOENT') return existsSync(lockDir) && Date.now() - statSync(lockDir).mtimeMs < 5000;
    return false;
  }
}

/** Runs `work` while holding the lock; waits for another set-up, takes over a dead one's lock. */
export async function withLock(work) {
  mkdirSync(stateDir, { recursive: true });
  let told = false;
  for (;;) {
    try {
      mkdirSync(lockDir);
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
      if (!holderIsAlive()) {
        rmSync(lockDir, { recursive: true, force: true });
        continue;
      }
      if (!told) say('Another set-up is at work in this folder; waiting for it.');
      told = true;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  }
  writeFileSync(pidFile, String(process.pid));
  await endOrphanedGroup();
  const release = () => rmSync(lockDir, { recursive: true, force: true });
  // Gone only when its compilers are; a second signal ends it at once.
  const onSignal = (signal) =>
    endCurrentGroup(() => {
      release();
      process.exit(128 + constants.signals[signal]);
    });
  for (const signal of signals) process.once(signal, onSignal);
  try {
    return await work();
  } finally {
    for (const signal of signals) process.off(signal, onSignal);
    release();
  }
}
