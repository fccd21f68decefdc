// Starts a program on Node 24 in this process's place: same standard streams, same exit code, signals passed on.
import { spawn } from 'node:child_process';
import { node24 } from './setup/paths.mjs';

/** @returns {Promise<number>} the exit code; 128 + n for a signal */
export function runNode(args, options = {}) {
  return runProgram(node24(), args, options);
}

export function runProgram(program, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: 'inherit', ...options });
    const forward = (signal) => child.kill(signal);
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, forward);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.off(name, forward);
      resolve(code ?? 128 + ({ SIGINT: 2, SIGTERM: 15, SIGKILL: 9, SIGHUP: 1 }[signal] ?? 1));
    });
  });
}
