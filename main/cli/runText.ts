import type { RunDetail, RunSummary } from '../contract/runs.ts';
import { count } from './progressBar.ts';

/** A run in a few lines for people. */
export function runText({ run }: { run: RunSummary }): string {
  const lines = [
    `${run.name}  ${run.id}  ${run.status}${run.reason === undefined ? '' : `: ${run.reason}`}`,
    `steps          ${count(run.steps)} of ${count(run.plannedSteps)}`,
  ];
  if (run.lastLoss !== undefined) lines.push(`training loss  ${fall(run.firstLoss, run.lastLoss)}`);
  if (run.evalLossAfter !== undefined)
    lines.push(`held-out loss  ${fall(run.evalLossBefore, run.evalLossAfter)}`);
  if (run.tokensPerSecond !== undefined)
    lines.push(`speed          ${count(run.tokensPerSecond)} real tokens/s`);
  return lines.join('\n');
}

/** `21.4 s; forecast 20.3 s ± 3.1 s (+5.4 %)` */
export function forecastText({
  seconds,
  errorSeconds,
  tookSeconds,
}: NonNullable<RunDetail['forecast']>): string {
  const off = (tookSeconds / seconds - 1) * 100;
  const sign = off < 0 ? '−' : '+';
  const forecast = `${seconds.toFixed(1)} s ± ${errorSeconds.toFixed(1)} s`;
  return `${tookSeconds.toFixed(1)} s for the steps; forecast ${forecast} (${sign}${Math.abs(off).toFixed(1)} %)`;
}

/** `3.421 → 2.105 (−38.5 %)` */
export function fall(from: number | undefined, to: number): string {
  if (from === undefined || from === to) return to.toFixed(4);
  const share = ((to - from) / from) * 100;
  return `${from.toFixed(4)} → ${to.toFixed(4)} (${share <= 0 ? '−' : '+'}${Math.abs(share).toFixed(1)} %)`;
}

/** Rows under heads; columns as wide as they need, those of numbers to the right. */
export function textTable(heads: string[], rows: string[][], right: number[] = []): string {
  const widths = heads.map((head, column) =>
    Math.max(head.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: string[]) =>
    cells
      .map((cell, column) =>
        right.includes(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd();
  return [line(heads), ...rows.map(line)].join('\n');
}
