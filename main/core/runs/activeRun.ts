import type { RunListRow, RunQueries } from '../../../db/queries/runs.ts';
import type { AccountQueries } from '../../../db/queries/accounts.ts';
import type { NoteQueries } from '../../../db/queries/runNotes.ts';
import type { SeriesQueries } from '../../../db/queries/series.ts';
import { TesseraError } from '../../contract/errors.ts';
import type { RunUpdate } from '../../contract/runs.ts';
import { EngineProcess, type EngineExit } from '../engine/engineProcess.ts';
import type { EngineCommand, EngineEvent } from '../engine/protocol.ts';
import type { Log } from '../log.ts';
import { startTimeOf } from '../lock.ts';
import { engineArguments, type RunInputs } from './engineArguments.ts';
import { RunRecorder } from './recorder.ts';
import { resumeHint } from './resumeHint.ts';
import { nextRunState, type RunEvent, type RunState } from './runState.ts';

export interface RunStores {
  runs: RunQueries;
  series: SeriesQueries;
  accounts: AccountQueries;
  notes: NoteQueries;
  publish: (update: RunUpdate) => void;
  log: Log;
}

type EngineEventOf<K extends EngineEvent['event']> = Extract<EngineEvent, { event: K }>;

/** Makes words of what the model answered to the recipe's prompt of that number. */
export type SampleReader = (index: number, ids: number[]) => Promise<{ prompt: string; text: string }>;

/** How long an engine may take to finish its step and save before it is killed. */
export const stopLimitMs = 120_000;

/** One run in the hands of one engine: events go into the history, commands to the engine. */
export class ActiveRun {
  readonly id: string;
  readonly ended: Promise<void>;
  private state: RunState;
  private readonly stores: RunStores;
  private readonly engine: EngineProcess;
  private readonly recorder: RunRecorder;
  private doneReason: string | undefined;
  private readonly samples: SampleReader | undefined;
  private readonly reading: Promise<void>[] = [];
  /** Set while it is asked to stop: the engine waits instead, because what it has learnt cannot be written. */
  private cannotStop: ((error: Error) => void) | undefined;
  private step: number;
  /** Step of its newest checkpoint. */
  private saved: number | undefined;
  private waiters: { event: string; resolve: () => void; reject: (error: Error) => void }[] = [];

  constructor(
    row: RunListRow,
    inputs: RunInputs,
    stores: RunStores,
    publishRun: (id: string) => void,
    samples?: SampleReader,
  ) {
    this.samples = samples;
    this.id = row.id;
    this.stores = stores;
    this.state = { status: 'queued' };
    this.saved = row.checkpointStep ?? undefined;
    this.step = this.saved ?? 0;
    this.recorder = new RunRecorder(row.id, stores.runs, stores.series, {
      onFlush: () => {
        publishRun(row.id);
      },
      onBlocked: (error) => {
        this.warn(
          'historyWaits',
          `The history cannot be written (${error.message}). The run goes on; its steps wait in memory.`,
        );
      },
      onWrittenAgain: () => {
        this.warn('historyWritten', 'The history is written again; nothing is missing.');
      },
    });
    this.engine = new EngineProcess({
      name: 'engine',
      args: [...engineArguments(inputs), '--attached', '--json'],
      log: stores.log,
      onEvent: (event) => {
        this.receive(event);
      },
    });
    this.apply({ kind: 'started' });
    const { pid } = this.engine;
    this.update({
      startedAtMs: row.startedAtMs ?? Date.now(),
      endedAtMs: null,
      engine: pid === undefined ? null : JSON.stringify({ pid, startTime: startTimeOf(pid) ?? '' }),
    });
    this.ended = this.engine.exited.then((exit) => this.end(exit));
  }

  /**
   * Resolves when the engine has done it, at once where it is so already.
   * @throws {TesseraError} what the engine said when it ended instead, or why it cannot be done
   */
  async command(command: EngineCommand): Promise<void> {
    if (command === 'stop') {
      await this.stop();
      return;
    }
    // The engine answers neither of these twice.
    const isPaused = this.state.status === 'paused';
    if ((command === 'pause' && isPaused) || (command === 'resume' && !isPaused)) return;
    if (command === 'profile' && isPaused) throw this.takesNoStep();
    const answer = { pause: 'paused', resume: 'resumed', checkpoint: 'checkpoint', profile: 'profile' }[
      command
    ];
    const answered = this.waitFor(answer);
    this.engine.send(command);
    await answered;
  }

  /** @throws {TesseraError} `notSaved` where it waits for room on the disk; stopped again it ends unsaved */
  async stop(limitMs = stopLimitMs): Promise<void> {
    const waiting = new AbortController();
    const held = new Promise<never>((_, reject) => {
      this.cannotStop = (error) => {
        waiting.abort();
        reject(error);
      };
    });
    try {
      await Promise.race([this.engine.stop(limitMs, waiting.signal), held]);
      await this.ended;
    } finally {
      this.cannotStop = undefined;
    }
  }

  private waitFor(event: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.waiters.push({ event, resolve, reject });
    });
  }

  private receive(event: EngineEvent): void {
    switch (event.event) {
      case 'hello':
        this.update({ kernels: JSON.stringify(event.kernels) });
        break;
      case 'step': {
        const { event: _event, steps: _steps, elapsedMs, ...step } = event;
        this.step = step.step;
        const whole = this.recorder.step({ ...step, elapsedMs, atMs: Math.round(step.atMs) });
        this.stores.publish({ kind: 'step', runId: this.id, step: whole });
        break;
      }
      case 'progress': {
        const { what, done, total } = event;
        this.stores.publish({
          kind: 'progress',
          runId: this.id,
          what,
          done,
          ...(total !== undefined && { total }),
        });
        break;
      }
      case 'account': {
        const { event: _event, fromStep, ...account } = event;
        this.recorder.write(() => {
          try {
            this.stores.accounts.put(this.id, fromStep, JSON.stringify(account));
          } catch (error) {
            // A running sum: the next one, two seconds on, holds all that this one held.
            this.stores.log(`the account of run ${this.id} could not be written: ${String(error)}`);
          }
        });
        break;
      }
      case 'telemetry':
        break;
      default:
        this.note(event);
    }
    this.answer(event.event);
  }

  /** Everything that belongs on the run's time line. */
  private note(
    event: Exclude<EngineEvent, { event: 'hello' | 'step' | 'progress' | 'account' | 'telemetry' }>,
  ): void {
    if (event.event === 'eval') {
      this.evaluated(event);
    } else if (event.event === 'sample') {
      this.reading.push(this.keepSample(event));
      return;
    } else if (event.event === 'checkpoint') {
      this.saved = event.step;
      this.update({ checkpointStep: event.step, checkpointPath: event.path });
    } else if (event.event === 'profile') {
      const step = event.step ?? this.step;
      this.recorder.write(() => {
        this.stores.runs.addProfile(this.id, step, Date.now(), JSON.stringify(event));
      });
    } else if (event.event === 'paused') {
      const { message } = event;
      this.apply({ kind: 'paused', ...(message !== undefined && { reason: message }) });
      this.refuse('profile', this.takesNoStep());
      if (message !== undefined) this.cannotStop?.(new TesseraError('notSaved', message));
    } else if (event.event === 'warning' && event.code === 'checkpoint_skipped') {
      this.refuse('checkpoint', new TesseraError('checkpointSkipped', event.message, event.hint));
    } else if (event.event === 'resumed') {
      this.apply({ kind: 'resumed' });
    } else if (event.event === 'done') {
      this.doneReason = event.reason ?? 'completed';
    }
    const { event: kind, ...data } = event;
    this.record(kind, kind === 'profile' ? {} : data);
  }

  private evaluated({ step, phase, loss, tokens, best }: EngineEventOf<'eval'>): void {
    this.recorder.write(() => {
      this.stores.runs.addEvaluation(this.id, { step, phase, loss, tokens });
    });
    this.update(phase === 'before' ? { evalLossBefore: loss } : { evalLossAfter: loss });
    if (best) this.update({ bestLoss: loss, bestStep: step });
  }

  private async keepSample({ step, index, ids }: EngineEventOf<'sample'>): Promise<void> {
    const { prompt, text } = (await this.samples?.(index, ids)) ?? { prompt: '', text: '' };
    this.recorder.write(() => {
      this.stores.notes.addSample(this.id, { step, position: index, prompt, text });
    });
    this.record('sample', { position: index, text }, step);
  }

  private update(fields: Parameters<RunQueries['update']>[1]): void {
    this.recorder.write(() => {
      this.stores.runs.update(this.id, fields);
    });
  }

  private warn(code: string, message: string): void {
    this.stores.log(`run ${this.id}: ${message}`);
    this.record('warning', { code, message });
  }

  private record(kind: string, data: Record<string, unknown>, step = this.step): void {
    const atMs = Date.now();
    this.stores.publish({ kind: 'event', runId: this.id, event: { atMs, step, kind, data } });
    this.recorder.write(() => {
      this.stores.runs.addEvent(this.id, { atMs, step, kind, data: JSON.stringify(data) });
    });
  }

  private takesNoStep(): TesseraError {
    return new TesseraError(
      'runPaused',
      `run ${this.id} is paused: it takes no step that could be profiled`,
      `Resume it first (tessera resume ${this.id}).`,
    );
  }

  private answer(event: string): void {
    const answered = this.waiters.filter((waiter) => waiter.event === event);
    this.waiters = this.waiters.filter((waiter) => waiter.event !== event);
    for (const { resolve } of answered) resolve();
  }

  private refuse(event: string, error: Error): void {
    const refused = this.waiters.filter((waiter) => waiter.event === event);
    this.waiters = this.waiters.filter((waiter) => waiter.event !== event);
    for (const { reject } of refused) reject(error);
  }

  private apply(event: RunEvent): void {
    const next = nextRunState(this.state, event);
    if (next === undefined) return;
    this.state = next;
    this.update({ status: next.status, reason: 'reason' in next ? next.reason : null });
  }

  private async end(exit: EngineExit): Promise<void> {
    await Promise.allSettled(this.reading);
    if (!exit.ok) this.apply({ kind: 'failed', reason: exit.error?.message ?? 'the engine failed' });
    else if (this.doneReason === 'completed') this.apply({ kind: 'completed' });
    else {
      const reason = this.doneReason === 'stopped' ? 'on request' : (this.doneReason ?? 'the engine ended');
      this.apply({ kind: 'stopped', reason });
    }
    this.update({ endedAtMs: Date.now(), engine: null });
    const { code = 'runEnded', message = 'the run ended', hint: told } = exit.error ?? {};
    const hint = told ?? (exit.ok ? undefined : resumeHint(this.id, this.saved));
    if (exit.error !== undefined) this.record('failed', { code, message, hint });
    for (const { reject } of this.waiters) reject(new TesseraError(code, message, hint));
    this.waiters = [];
    await this.recorder.done();
  }
}
