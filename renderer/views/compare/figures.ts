import type { RunFigures, RunSummary } from '../../../main/contract/runs.ts';
import { bytes, compactCount, decimal, duration, integer, percent } from '../../format.ts';

/** One thing that came of runs. */
export interface Line {
  label: string;
  value: (run: RunSummary, figures: RunFigures) => number | undefined;
  write: (value: number) => string;
  best?: 'low' | 'high';
  /** Of all that a run did: one that ended early needed less, and is not the better for it. */
  isTotal?: true;
}
const loss = (value: number) => decimal(value, 3);
const results: Line[] = [
  { label: 'Loss, first steps', value: (run) => run.firstLoss, write: loss },
  { label: 'Loss, last steps', value: (run) => run.lastLoss, write: loss, best: 'low' },
  { label: 'Loss, best 20 steps', value: (_run, { bestLoss }) => bestLoss, write: loss, best: 'low' },
  { label: 'Held-out loss, before', value: (run) => run.evalLossBefore, write: loss },
  { label: 'Held-out loss, after', value: (run) => run.evalLossAfter, write: loss, best: 'low' },
  { label: 'Held-out loss, best', value: (_run, { bestEvalLoss }) => bestEvalLoss, write: loss, best: 'low' },
  { label: 'Real tokens per second', value: (run) => run.tokensPerSecond, write: compactCount, best: 'high' },
  {
    label: 'Time per real token',
    value: (run) => (run.tokensPerSecond === undefined ? undefined : 1e6 / run.tokensPerSecond),
    write: (value) => `${decimal(value, value < 100 ? 2 : 1)} µs`,
    best: 'low',
  },
  {
    label: 'Padding',
    value: (_run, { realTokens, positions }) => (positions > 0 ? 1 - realTokens / positions : undefined),
    write: (value) => percent(value),
    best: 'low',
  },
  { label: 'Real tokens', value: (_run, { realTokens }) => realTokens, write: compactCount },
  { label: 'Steps', value: (run) => run.steps, write: integer },
  { label: 'Launches a step', value: (_run, { launchesPerStep }) => launchesPerStep, write: integer },
  { label: 'Memory planned', value: (_run, { plannedBytes }) => plannedBytes, write: bytes, best: 'low' },
  { label: 'Memory peak', value: (_run, { peakGpuBytes }) => peakGpuBytes, write: bytes, best: 'low' },
  {
    label: 'Energy',
    value: (_run, { energyJ }) => energyJ,
    write: (value) => `${decimal(value / 3.6e6, 3)} kWh`,
    best: 'low',
    isTotal: true,
  },
  {
    label: 'Took',
    // As in the list of runs: time in which it was stopped, paused or asleep is not its own.
    value: (run) => (run.elapsedMs > 0 ? run.elapsedMs : undefined),
    write: duration,
    best: 'low',
    isTotal: true,
  },
];

export interface Compared {
  run: RunSummary;
  color: string;
}

export const resultOf = ({ value }: Line, entry?: Compared, figures?: RunFigures): number | undefined =>
  entry === undefined || figures === undefined ? undefined : value(entry.run, figures);

/** A line that no run has a value for (GPU energy on the CPU) is no news. */
export function knownResults(runs: Compared[], figures: RunFigures[]): Line[] {
  return results.filter((line) => runs.some((run, i) => resultOf(line, run, figures[i]) !== undefined));
}

/** The value that the best of them has; none where they are all alike, or none is better than another. */
export function bestOf(line: Line, runs: Compared[], figures: RunFigures[]): number | undefined {
  const values = runs.flatMap((entry, i) =>
    line.isTotal && entry.run.status !== 'completed' ? [] : (resultOf(line, entry, figures[i]) ?? []),
  );
  if (line.best === undefined || new Set(values).size < 2) return undefined;
  return line.best === 'low' ? Math.min(...values) : Math.max(...values);
}

/** A recipe's value in a cell. */
export function cell(value: unknown): string {
  if (typeof value === 'number') return String(Number(value.toPrecision(6)));
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '–' : JSON.stringify(value);
}

/** Of a path the end tells runs apart, and is what a narrow column would cut off. */
export function shortCell(value: unknown): string {
  return cell(value).replace(/^(?:\/|[A-Za-z]:\\).*[\\/](?=[^\\/]+$)/, '…/');
}
