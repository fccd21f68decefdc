// What set-up says, always on stderr: stdout belongs to the command that set-up precedes.
import { createWriteStream, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { endCurrentGroup, spawnGroup } from './child.mjs';

const quiet = process.env.TESSERA_SETUP_QUIET === '1';

export function say(text) {
  if (!quiet) process.stderr.write(`${text}\n`);
}

/** An error that set-up explains itself: what happened and the way out; no stack is shown. */
export class SetupError extends Error {
  constructor(message, hint) {
    super(message);
    this.hint = hint;
  }
}

/** `12/240, about 90 s left`: by what the part that is done took; nothing is promised before a twentieth of it is. */
export function howFar({ done, total, unit = '' }, seconds) {
  const left = Math.round((seconds / done) * (total - done));
  const promise =
    done >= total || done < total / 20
      ? ''
      : `, about ${left < 100 ? `${left} s` : `${Math.round(left / 60)} min`} left`;
  return `${done}/${total}${unit && ` ${unit}`}${promise}`;
}

/**
 * Runs a command with a heartbeat on stderr; its whole output goes to `logFile`.
 * @param {{label: string, command: string, args: string[], cwd: string, env?: NodeJS.ProcessEnv, logFile: string,
 *   timeoutMs: number, progress?: (line: string) => {done: number, total: number, unit?: string} | undefined}} options
 *   `progress` reads from an output line how far it is; that and the time left stand beside the elapsed time.
 * @returns {Promise<void>} rejects with a SetupError holding the last lines of output
 */
export function runLogged({ label, command, args, cwd, env, logFile, timeoutMs, progress }) {
  mkdirSync(dirname(logFile), { recursive: true });
  const log = createWriteStream(logFile);
  const startedMs = Date.now();
  const seconds = () => `${Math.round((Date.now() - startedMs) / 1000)} s`;
  const tty = process.stderr.isTTY && !quiet;
  let far;
  const show = () => {
    const line = `  ${label} ${far ? `${howFar(far, (Date.now() - startedMs) / 1000)}, ` : ''}${seconds()}`;
    if (tty) process.stderr.write(`\r\x1b[2K${line}`);
    else say(line);
  };
  return new Promise((resolve, reject) => {
    const child = spawnGroup(command, args, {
      cwd,
      env: env ?? process.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const tail = [];
    let pending = '';
    const take = (chunk) => {
      log.write(chunk);
      const lines = (pending + chunk.toString('utf8')).split(/[\r\n]+/);
      pending = lines.pop() ?? '';
      for (const line of lines) {
        tail.push(line);
        if (tail.length > 30) tail.shift();
        far = progress?.(line) ?? far;
      }
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    const beat = setInterval(show, tty ? 250 : 5000);
    let timedOut = false;
    const limit = setTimeout(() => {
      timedOut = true;
      endCurrentGroup();
    }, timeoutMs);
    const finish = (error) => {
      clearInterval(beat);
      clearTimeout(limit);
      log.end();
      if (tty) process.stderr.write('\r\x1b[2K');
      if (error) return reject(error);
      say(`  ${label} done in ${seconds()}`);
      resolve();
    };
    child.on('error', (error) =>
      finish(
        new SetupError(
          `${label}: ${command} cannot be started (${error.message})`,
          `Is ${command} installed?`,
        ),
      ),
    );
    child.on('close', (code, signal) => {
      if (code === 0) return finish();
      const why = timedOut ? `stopped after ${seconds()}` : `exit ${code ?? signal}`;
      finish(
        new SetupError(
          `${label}: ${command} ${args.join(' ')} failed (${why})\n${tail.join('\n')}`,
          `The whole log: ${logFile}`,
        ),
      );
    });
  });
}
