import type { RunQueries, StepRow } from '../../../db/queries/runs.ts';
import { addTotals, type SeriesQueries } from '../../../db/queries/series.ts';
import type { RunStep } from '../../contract/runs.ts';

const flushMs = 250;
const maxBatch = 1000;
const retryMs = 2000;

/** A step as the engine tells it; `elapsedMs` counts from the engine's own start. */
export type EngineStep = Omit<RunStep, 'elapsedMs' | 'realTokensTotal' | 'flopsTotal'> & {
  elapsedMs: number | undefined;
};

export interface RecorderEvents {
  onFlush: () => void;
  /** The history cannot be written: steps wait in memory until it can. */
  onBlocked?: (error: Error) => void;
  onWrittenAgain?: (numSteps: number) => void;
}

/**
 * Everything that is written of a run while it trains, in order: steps in batches, with the totals that the list of
 * runs shows, and what happens beside them. Where the database cannot be written (the disk is full, somebody holds it)
 * it all waits here and is tried again; the run does not notice.
 */
export class RunRecorder {
  private readonly runId: string;
  private readonly runs: RunQueries;
  private readonly series: SeriesQueries;
  private readonly events: RecorderEvents;
  private batch: StepRow[] = [];
  /** Writes in their order; steps are one of them. */
  private waiting: (() => void)[] = [];
  private timer: NodeJS.Timeout | undefined;
  private previous: StepRow | undefined;
  private engineStartedMs = 0;
  private isFirst = true;
  private isBlocked = false;
  private drained: (() => void)[] = [];

  constructor(runId: string, runs: RunQueries, series: SeriesQueries, events: RecorderEvents) {
    this.runId = runId;
    this.runs = runs;
    this.series = series;
    this.events = events;
  }

  /** Takes a step; returns it with the run's totals. */
  step({ elapsedMs, ...step }: EngineStep): RunStep {
    if (this.isFirst) {
      const { step: number } = step;
      // The engine may have gone back to an older checkpoint than was asked: what it says holds.
      this.write(() => {
        this.series.truncate(this.runId, number - 1);
      });
      this.previous = this.series.at(this.runId, number - 1);
      this.engineStartedMs = this.previous?.elapsedMs ?? 0;
      this.isFirst = false;
    }
    const since = elapsedMs ?? (this.previous?.elapsedMs ?? 0) - this.engineStartedMs + step.milliseconds;
    const row = addTotals(this.previous, { ...step, elapsedMs: this.engineStartedMs + since });
    this.previous = row;
    this.batch.push(row);
    if (this.batch.length >= maxBatch && !this.isBlocked) this.flush();
    this.timer ??= setTimeout(
      () => {
        this.flush();
      },
      this.isBlocked ? retryMs : flushMs,
    );
    return row;
  }

  /** Writes now, after all that waits, or as soon as it can be written. */
  write(work: () => void): void {
    this.takeBatch();
    this.waiting.push(work);
    this.flush();
  }

  flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.takeBatch();
    const numWaiting = this.waiting.length;
    if (numWaiting === 0) return;
    try {
      for (let work = this.waiting[0]; work !== undefined; work = this.waiting[0]) {
        work();
        this.waiting.shift();
      }
    } catch (error) {
      if (!canWait(error)) {
        this.waiting.shift();
        throw error;
      }
      this.block(error as Error);
      return;
    }
    if (this.isBlocked) {
      this.isBlocked = false;
      this.events.onWrittenAgain?.(numWaiting);
    }
    for (const resolve of this.drained.splice(0)) resolve();
    this.events.onFlush();
  }

  /** Resolves when nothing waits any more. */
  async done(): Promise<void> {
    this.flush();
    if (this.waiting.length === 0) return;
    await new Promise<void>((resolve) => {
      this.drained.push(resolve);
    });
  }

  private takeBatch(): void {
    if (this.batch.length === 0) return;
    const { batch } = this;
    this.batch = [];
    this.waiting.push(() => {
      this.series.append(this.runId, batch);
      updateTotals(this.runId, this.runs, this.series);
    });
  }

  private block(error: Error): void {
    this.timer ??= setTimeout(() => {
      this.flush();
    }, retryMs);
    if (this.isBlocked) return;
    this.isBlocked = true;
    this.events.onBlocked?.(error);
  }
}

/** The disk is full or fails, or another program holds the database: it may be better in a moment. */
function canWait(error: unknown): boolean {
  const code = (error as { code?: string }).code ?? '';
  return /^SQLITE_(FULL|IOERR|BUSY|LOCKED|CANTOPEN|READONLY)/.test(code);
}

/** Losses, speed and the number of steps of a run, from its stored steps. */
export function updateTotals(runId: string, runs: RunQueries, series: SeriesQueries): void {
  const { steps, realTokens, milliseconds, elapsedMs, firstLoss, lastLoss } = series.totals(runId);
  runs.update(runId, {
    steps,
    firstLoss,
    lastLoss,
    activeMs: milliseconds,
    elapsedMs,
    tokensPerSecond: milliseconds > 0 ? (realTokens * 1000) / milliseconds : null,
  });
}
