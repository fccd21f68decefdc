import type { RunListRow, RunQueries } from '../../../db/queries/runs.ts';
import type { AccountQueries } from '../../../db/queries/accounts.ts';
import type { SeriesQueries } from '../../../db/queries/series.ts';
import { TesseraError } from '../../contract/errors.ts';
import type { RunUpdate } from '../../contract/runs.ts';
import { EngineProcess, type EngineExit } from '../engine/engineProcess.ts';
import type { EngineCommand, EngineEvent } from '../engine/protocol.ts';
import type { Log } from '../log.ts';
import { startTimeOf } from '../lock.ts';
import { engineArguments, type RunInputs } from './engineArguments.ts';
import { RunRecorder } from './recorder.ts';
import { nextRunState, type RunEvent, type RunState } from './runState.ts';

export interface RunStores {
  runs: RunQueries;
  series: SeriesQueries;
  accounts: AccountQueries;
  publish: (update: RunUpdate) => void;
  log: Log;
}

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
  private step: number;
  private waiters: { event: string; resolve: () => void; reject: (error: Error) => void }[] = [];

  constructor(row: RunListRow, inputs: RunInputs, stores: RunStores, publishRun: (id: string) => void) {
    this.id = row.id;
    this.stores = stores;
    this.state = { status: 'queued' };
    this.step = row.checkpointStep ?? 0;
    this.recorder = new RunRecorder(row.id, stores.runs, stores.series, () => {
      publishRun(row.id);
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
    stores.runs.update(this.id, {
      startedAtMs: row.startedAtMs ?? Date.now(),
      endedAtMs: null,
      engine: pid === undefined ? null : JSON.stringify({ pid, startTime: startTimeOf(pid) ?? '' }),
    });
    this.ended = this.engine.exited.then((exit) => {
      this.end(exit);
    });
  }

  /** Resolves when the engine has done it. @throws {TesseraError} what the engine said when it ended instead */
  async command(command: EngineCommand): Promise<void> {
    if (command === 'stop') {
      await this.stop();
      return;
    }
    const answer = { pause: 'paused', resume: 'resumed', checkpoint: 'checkpoint', profile: 'profile' }[
      command
    ];
    const answered = this.waitFor(answer);
    this.engine.send(command);
    await answered;
  }

  async stop(limitMs = stopLimitMs): Promise<void> {
    await this.engine.stop(limitMs);
    await this.ended;
  }

  private waitFor(event: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.waiters.push({ event, resolve, reject });
    });
  }

  private receive(event: EngineEvent): void {
    switch (event.event) {
      case 'hello':
        this.stores.runs.update(this.id, { kernels: JSON.stringify(event.kernels) });
        break;
      case 'step': {
        const { event: _event, steps: _steps, ...step } = event;
        this.step = step.step;
        const rounded = { ...step, atMs: Math.round(step.atMs) };
        this.recorder.step(rounded);
        this.stores.publish({ kind: 'step', runId: this.id, step: rounded });
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
        this.stores.accounts.put(this.id, fromStep, JSON.stringify(account));
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
    this.recorder.flush();
    const { runs } = this.stores;
    if (event.event === 'eval') {
      runs.addEvaluation(this.id, event);
      if (event.phase === 'before') runs.update(this.id, { evalLossBefore: event.loss });
      else runs.update(this.id, { evalLossAfter: event.loss });
    } else if (event.event === 'checkpoint') {
      runs.update(this.id, { checkpointStep: event.step, checkpointPath: event.path });
    } else if (event.event === 'profile') {
      runs.addProfile(this.id, event.step ?? this.step, Date.now(), JSON.stringify(event));
    } else if (event.event === 'paused') {
      this.apply({ kind: 'paused' });
    } else if (event.event === 'resumed') {
      this.apply({ kind: 'resumed' });
    } else if (event.event === 'done') {
      this.doneReason = event.reason ?? 'completed';
    }
    const { event: kind, ...data } = event;
    this.record(kind, kind === 'profile' ? {} : data);
  }

  private record(kind: string, data: Record<string, unknown>): void {
    const atMs = Date.now();
    const { step } = this;
    this.stores.runs.addEvent(this.id, { atMs, step, kind, data: JSON.stringify(data) });
    this.stores.publish({ kind: 'event', runId: this.id, event: { atMs, step, kind, data } });
  }

  private answer(event: string): void {
    const answered = this.waiters.filter((waiter) => waiter.event === event);
    this.waiters = this.waiters.filter((waiter) => waiter.event !== event);
    for (const { resolve } of answered) resolve();
  }

  private apply(event: RunEvent): void {
    const next = nextRunState(this.state, event);
    if (next === undefined) return;
    this.state = next;
    this.stores.runs.update(this.id, { status: next.status, reason: 'reason' in next ? next.reason : null });
  }

  private end(exit: EngineExit): void {
    this.recorder.flush();
    if (!exit.ok) this.apply({ kind: 'failed', reason: exit.error?.message ?? 'the engine failed' });
    else if (this.doneReason === 'completed') this.apply({ kind: 'completed' });
    else {
      const reason = this.doneReason === 'stopped' ? 'on request' : (this.doneReason ?? 'the engine ended');
      this.apply({ kind: 'stopped', reason });
    }
    this.stores.runs.update(this.id, { endedAtMs: Date.now(), engine: null });
    if (exit.error !== undefined) this.record('failed', exit.error);
    const { code = 'runEnded', message = 'the run ended', hint } = exit.error ?? {};
    for (const { reject } of this.waiters) reject(new TesseraError(code, message, hint));
    this.waiters = [];
  }
}
