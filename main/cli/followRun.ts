import { TesseraError } from '../contract/errors.ts';
import type { CoreClient } from '../contract/index.ts';
import type { RunSummary, RunUpdate } from '../contract/runs.ts';
import type { Invocation } from './command.ts';
import { count } from './progressBar.ts';
import { resumeHint } from '../core/runs/resumeHint.ts';

const ended = new Set(['completed', 'stopped', 'failed']);

type Watcher = Pick<Invocation, 'progress' | 'note' | 'interrupted'>;

/**
 * Shows a run until it ends; Ctrl-C stops it, saved. The run does not need this: a command that is killed leaves
 * it going.
 */
export async function followRun(core: CoreClient, id: string, watcher: Watcher): Promise<RunSummary> {
  const { progress, note, interrupted } = watcher;
  const signal = interrupted();
  const stop = () => {
    note('stopping: finishing the step and saving (Ctrl-C again leaves at once)');
    core.call('runs:command', { id, command: 'stop' }).catch(() => undefined);
  };
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  let plannedSteps = 0;
  try {
    return await new Promise<RunSummary>((resolve, reject) => {
      const show = (update: RunUpdate) => {
        if (update.kind === 'run') {
          ({ plannedSteps } = update.run);
          if (ended.has(update.run.status)) resolve(update.run);
          else if (update.run.status === 'queued') progress.wait('Waiting for its turn and its data');
        } else if (update.kind === 'step') {
          const { step, loss, realTokens, milliseconds } = update.step;
          const speed = `${count((realTokens * 1000) / Math.max(milliseconds, 1e-3))} tokens/s`;
          progress.update({
            what: 'Training',
            done: step,
            total: plannedSteps,
            unit: 'steps',
            detail: `loss ${loss.toFixed(4)}  ${speed}`,
          });
        } else if (update.kind === 'progress') {
          progress.update({
            what: sentence(update.what),
            done: update.done,
            ...(update.total !== undefined && { total: update.total }),
          });
        } else note(...eventLine(update.event));
      };
      const watch = core.subscribe('runs:watch', { id }, (updates, numDropped) => {
        updates.forEach(show);
        // An update that was dropped may have been the last one.
        if (numDropped > 0)
          core.call('runs:show', { id }).then(
            ({ run }) => {
              show({ kind: 'run', run });
            },
            (error: unknown) => {
              reject(coreGone(error, id));
            },
          );
      });
      watch.done.catch((error: unknown) => {
        reject(coreGone(error, id));
      });
    });
  } finally {
    signal.removeEventListener('abort', stop);
    progress.clear();
  }
}

/** Where the core ended the run is not lost: the same command again would train it from the beginning. */
function coreGone(error: unknown, id: string): Error {
  if (!(error instanceof TesseraError) || error.code !== 'disconnected')
    return error instanceof Error ? error : new Error(String(error));
  const hint = `Its engine saves and ends by itself. Then go on with it (tessera resume ${id}).`;
  return new TesseraError(error.code, `the core ended while run ${id} trained`, hint);
}

/** @throws {TesseraError} `runFailed`: the command fails with its run */
export async function notFailed(core: CoreClient, run: RunSummary): Promise<RunSummary> {
  if (run.status !== 'failed') return run;
  const { hint, checkpointStep } = (await core.call('runs:show', { id: run.id })).run;
  const message = `run ${run.name} (${run.id}) failed at step ${run.steps}: ${run.reason ?? 'for no known reason'}`;
  const resume = resumeHint(run.id, checkpointStep);
  const way = hint === undefined || hint === resume ? resume : `${withStop(hint)} ${resume}`;
  throw new TesseraError('runFailed', message, way);
}

function sentence(what: string): string {
  return what.slice(0, 1).toUpperCase() + what.slice(1);
}

/** With a full stop, where what was said has none. */
const withStop = (words: unknown) => String(words).replace(/[^.!?]$/, '$&.');

function eventLine({
  kind,
  step,
  data,
}: {
  kind: string;
  step?: number | undefined;
  data: Record<string, unknown>;
}): [string] {
  if (kind === 'eval') return [`held-out loss ${Number(data.loss).toFixed(4)} at step ${String(data.step)}`];
  if (kind === 'warning')
    return [`warning: ${[data.message, data.hint].filter(Boolean).map(withStop).join(' ')}`];
  if (kind === 'paused' && typeof data.message === 'string') return [`waiting: ${data.message}`];
  return [`${kind}${step === undefined ? '' : ` at step ${step}`}`];
}
