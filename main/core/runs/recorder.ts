import type { RunQueries } from '../../../db/queries/runs.ts';
import type { SeriesQueries } from '../../../db/queries/series.ts';
import type { RunStep } from '../../contract/runs.ts';

const flushMs = 250;
const maxBatch = 1000;

/** Collects a run's steps and writes them in batches, with the totals that the list of runs shows. */
export class RunRecorder {
  private readonly runId: string;
  private readonly runs: RunQueries;
  private readonly series: SeriesQueries;
  private readonly onFlush: () => void;
  private batch: RunStep[] = [];
  private timer: NodeJS.Timeout | undefined;
  private isFirst = true;

  constructor(runId: string, runs: RunQueries, series: SeriesQueries, onFlush: () => void) {
    this.runId = runId;
    this.runs = runs;
    this.series = series;
    this.onFlush = onFlush;
  }

  step(step: RunStep): void {
    if (this.isFirst) {
      // The engine may have gone back to an older checkpoint than was asked: what it says holds.
      this.series.truncate(this.runId, step.step - 1);
      this.isFirst = false;
    }
    this.batch.push(step);
    if (this.batch.length >= maxBatch) this.flush();
    this.timer ??= setTimeout(() => {
      this.flush();
    }, flushMs);
  }

  flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.batch.length === 0) return;
    const { batch } = this;
    this.batch = [];
    this.series.append(this.runId, batch);
    updateTotals(this.runId, this.runs, this.series);
    this.onFlush();
  }
}

/** Losses, speed and the number of steps of a run, from its stored steps. */
export function updateTotals(runId: string, runs: RunQueries, series: SeriesQueries): void {
  const { steps, realTokens, milliseconds, firstLoss, lastLoss } = series.totals(runId);
  runs.update(runId, {
    steps,
    firstLoss,
    lastLoss,
    activeMs: milliseconds,
    tokensPerSecond: milliseconds > 0 ? (realTokens * 1000) / milliseconds : null,
  });
}
