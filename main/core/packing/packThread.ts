import { Worker } from 'node:worker_threads';
import type { PackedExamples } from '../../contract/packing.ts';
import { fromErrorBody, TesseraError } from '../../contract/errors.ts';
import { runPackJob, type PackJob, type PlanAnswer } from './packJob.ts';
import type { PackMessage } from './packWorker.ts';

const workerFile = new URL(
  import.meta.url.endsWith('.ts') ? './packWorker.ts' : './packWorker.js',
  import.meta.url,
);

/** Up to here packing takes less time than a thread takes to start. */
const mostInline = 100_000;

/**
 * Does the work, in a thread where there are more examples (over all epochs) than can be packed between two beats of the
 * core. Aborting the signal ends the thread.
 * @throws {TesseraError} what the work refused, `cancelled`, or `packingCrashed`
 */
export function packInThread(
  job: PackJob & { kind: 'plan' },
  examples: number,
  signal: AbortSignal,
): Promise<PlanAnswer>;
export function packInThread(
  job: PackJob & { kind: 'examples' },
  examples: number,
  signal: AbortSignal,
): Promise<PackedExamples>;
export async function packInThread(
  job: PackJob,
  examples: number,
  signal: AbortSignal,
): Promise<PlanAnswer | PackedExamples> {
  if (examples <= mostInline) return runPackJob(job);
  signal.throwIfAborted();
  const worker = new Worker(workerFile, { workerData: job });
  const cancelled = () => new TesseraError('cancelled', 'packing was cancelled');
  const cancel = () => void worker.terminate();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    return await new Promise((resolve, reject) => {
      worker.on('message', (message: PackMessage) => {
        if (message.kind === 'done') resolve(message.answer);
        else reject(fromErrorBody(message.error));
      });
      worker.on('error', (error) => {
        reject(crashed((error as Error).message));
      });
      worker.on('exit', (code) => {
        reject(signal.aborted ? cancelled() : crashed(`exit code ${String(code)}`));
      });
    });
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

function crashed(why: string): TesseraError {
  return new TesseraError(
    'packingCrashed',
    `packing ended unexpectedly: ${why}`,
    'Close what else takes memory, or pack fewer epochs at once.',
  );
}
