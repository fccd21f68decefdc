import { spawn, type ChildProcess } from 'node:child_process';
import { TesseraError } from '../../contract/errors.ts';
import type { Log } from '../log.ts';
import { engineBinary } from './binary.ts';
import { protocolMismatch, shapeMismatch } from './mismatch.ts';
import { nextEngineState, type EngineSignal, type EngineState } from './engineState.ts';
import { onLines } from './lines.ts';
import { engineEvent, protocolVersion, type EngineCommand, type EngineEvent } from './protocol.ts';

export interface EngineOptions {
  /** What it is called in the log. */
  name: string;
  /** Arguments of the native program, its subcommand first. */
  args: string[];
  log: Log;
  onEvent: (event: EngineEvent) => void;
  env?: NodeJS.ProcessEnv;
}

/** How an engine ended. `error` is what it said of itself, else what its exit tells. */
export interface EngineExit {
  ok: boolean;
  error?: { code: string; message: string; hint?: string };
}

const maxLineLength = 64 * 1024 * 1024;
const keptLogLines = 20;
const longestTimerMs = 2 ** 31 - 1;

/** The wrapper of one native process: spawns it, speaks JSON Lines with it, ends it within a limit. */
export class EngineProcess {
  state: EngineState = { kind: 'stopped' };
  readonly exited: Promise<EngineExit>;
  private readonly child: ChildProcess;
  private readonly options: EngineOptions;
  private readonly lastLog: string[] = [];
  private failure: EngineExit['error'];

  constructor(options: EngineOptions) {
    this.options = options;
    this.child = spawn(engineBinary(), options.args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      // Not in the terminal's process group: a Ctrl-C there goes to the command, which asks the core.
      detached: true,
      env: { ...process.env, ...options.env },
    });
    if (this.child.pid !== undefined) this.signal({ kind: 'spawned', pid: this.child.pid });
    if (this.child.stdout) onLines(this.child.stdout, maxLineLength, (line) => this.receive(line));
    if (this.child.stderr) onLines(this.child.stderr, maxLineLength, (line) => this.keepLog(line));
    // A write that races with its exit is answered by the exit.
    this.child.stdin?.on('error', () => undefined);
    this.exited = new Promise((resolve) => {
      this.child.once('error', (error) => {
        resolve({
          ok: false,
          error: { code: 'engineStart', message: `the engine could not be started: ${error.message}` },
        });
      });
      this.child.once('close', (code, signal) => {
        const ok = code === 0 && this.failure === undefined;
        const exit: EngineExit = ok ? { ok } : { ok, error: this.failure ?? this.describeExit(code, signal) };
        this.signal({ kind: 'exited', ok, reason: exit.error?.message ?? '' });
        resolve(exit);
      });
    });
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  send(command: EngineCommand, fields: Record<string, unknown> = {}): void {
    this.child.stdin?.write(`${JSON.stringify({ command, ...fields })}\n`);
  }

  /**
   * Asks it to finish its step and save; after `limitMs` it is killed, unless `signal` is aborted before. Resolves when
   * it is gone.
   */
  async stop(limitMs: number, signal?: AbortSignal): Promise<EngineExit> {
    this.signal({ kind: 'stopAsked' });
    this.send('stop');
    const timer = setTimeout(() => {
      this.failure ??= {
        code: 'engineSilent',
        message: `the engine did not stop within ${limitMs / 1000} s and was killed`,
      };
      this.kill();
    }, limitMs);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
    });
    try {
      return await this.exited;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends its stdin, which a program without work takes as its end; after `limitMs` it is killed. */
  async close(limitMs: number): Promise<void> {
    this.signal({ kind: 'stopAsked' });
    this.child.stdin?.end();
    const timer = setTimeout(() => {
      this.kill();
    }, limitMs);
    await this.exited;
    clearTimeout(timer);
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }

  private signal(signal: EngineSignal): void {
    this.state = nextEngineState(this.state, signal);
  }

  private receive(line: string): void {
    if (line.trim() === '') return;
    const event = parseEvent(line);
    if (event instanceof TesseraError) {
      this.refuse(event);
      return;
    }
    if (event === undefined) {
      this.keepLog(`(stdout) ${line.slice(0, 500)}`);
      return;
    }
    if (event.event === 'hello') {
      if (event.protocol !== protocolVersion) this.refuse(protocolMismatch(event.protocol, protocolVersion));
      this.signal({ kind: 'hello' });
    } else if (event.event === 'step') {
      this.signal({ kind: 'step', step: event.step });
    } else if (event.event === 'error') {
      const { code, message, hint, rank } = event;
      const where = rank === undefined || message.startsWith(`rank ${rank} `) ? '' : `rank ${rank}: `;
      this.failure = { code, message: where + message, ...(typeof hint === 'string' && { hint }) };
    }
    this.options.onEvent(event);
  }

  private refuse(error: TesseraError): void {
    const { code, message, hint } = error;
    this.failure = { code, message, ...(hint !== undefined && { hint }) };
    this.kill();
  }

  private keepLog(line: string): void {
    this.lastLog.push(line);
    if (this.lastLog.length > keptLogLines) this.lastLog.shift();
    this.options.log(`[${this.options.name} ${this.child.pid ?? '?'}] ${line}`);
  }

  private describeExit(code: number | null, signal: NodeJS.Signals | null): NonNullable<EngineExit['error']> {
    const last = this.lastLog.at(-1);
    return {
      code: 'engineDied',
      message: `the engine ${signal === null ? `ended with exit code ${String(code)}` : `was killed by ${signal}`}${last === undefined ? '' : `; its last words: ${last}`}`,
    };
  }
}

/** Undefined for what is no event that this program knows; an error for one that it knows in another shape. */
function parseEvent(line: string): EngineEvent | TesseraError | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  const parsed = engineEvent.safeParse(value);
  if (parsed.success) return parsed.data;
  const { event } = (value ?? {}) as { event?: unknown };
  const isKnown = engineEvent.options.some(({ shape }) => shape.event.value === event);
  return isKnown ? shapeMismatch(`event '${String(event)}'`, parsed.error) : undefined;
}

export interface RunEngineOptions {
  input?: string;
  signal?: AbortSignal;
  /** A report that ends with exit code 1 (a check that did not hold) is an answer, not a failure. */
  maySayNo?: boolean;
  /** An engine that has not answered by then is killed; absent: it may take as long as it likes. */
  limitMs?: number;
  /** How far it is, where it says so before it answers. */
  onProgress?: (progress: Extract<EngineEvent, { event: 'progress' }>) => void;
}

const rebuild = 'Build it anew where the program is damaged, or name another with TESSERA_ENGINE.';

/** Runs the native program to its end and returns the one JSON value that it prints; `askEngine` checks its shape too. */
export async function runEngine(args: string[], options: RunEngineOptions = {}): Promise<unknown> {
  const program = engineBinary();
  const child = spawn(program, [...args, '--json'], { ...(options.signal && { signal: options.signal }) });
  const limit = { isPassed: false };
  const timer = setTimeout(() => {
    limit.isPassed = true;
    child.kill('SIGKILL');
  }, options.limitMs ?? longestTimerMs);
  let out = '';
  let log = '';
  onLines(child.stdout, maxLineLength, (line) => {
    const event = line.includes('"progress"') ? parseEvent(line) : undefined;
    if (event !== undefined && 'event' in event && event.event === 'progress') options.onProgress?.(event);
    else out += `${line}\n`;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (log = (log + chunk).slice(-4000)));
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.input ?? '');
  const code = await new Promise<number | string>((resolve, reject) => {
    child.once('error', (error) => {
      const isOurs = options.signal?.aborted === true;
      const words = `the engine ${program} could not be started: ${error.message}`;
      reject(isOurs ? error : new TesseraError('engineStart', words, rebuild));
    });
    child.once('close', (status, signal) => resolve(status ?? signal ?? 'unknown'));
  }).finally(() => {
    clearTimeout(timer);
  });
  if (limit.isPassed) {
    const seconds = (options.limitMs ?? 0) / 1000;
    const words = `the engine ${program} did not answer '${args[0] ?? ''}' within ${seconds} s and was killed`;
    throw new TesseraError(
      'engineSilent',
      words,
      `Look at what holds it up (a driver that hangs?). ${rebuild}`,
    );
  }
  const value = lastJson(out);
  const failure = (value as { error?: { code: string; message: string; hint?: string } } | undefined)?.error;
  if (failure !== undefined) throw new TesseraError(failure.code, failure.message, failure.hint);
  const isAnswer = code === 0 || (code === 1 && options.maySayNo === true);
  if (!isAnswer || value === undefined) {
    const last = log.trim().split('\n').at(-1) ?? '';
    const hint =
      code === 'SIGKILL' ? 'Something else ended it; a system out of memory does that. Try again.' : rebuild;
    const words = `tessera-engine ${args[0] ?? ''} ended with ${code}${last === '' ? '' : `: ${last}`}`;
    throw new TesseraError('engineFailed', words, hint);
  }
  return value;
}

function lastJson(out: string): unknown {
  for (const text of [out, out.trim().split('\n').at(-1) ?? '']) {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      // A stream of lines: the last one is the result.
    }
  }
  return undefined;
}
