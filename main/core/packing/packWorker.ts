import { parentPort, workerData } from 'node:worker_threads';
import { toErrorBody, type ErrorBody } from '../../contract/errors.ts';
import { runPackJob, type PackJob } from './packJob.ts';

/** What the packing thread tells, once. */
export type PackMessage =
  { kind: 'done'; answer: ReturnType<typeof runPackJob> } | { kind: 'failed'; error: ErrorBody };

function tell(message: PackMessage): void {
  parentPort?.postMessage(message);
}

try {
  tell({ kind: 'done', answer: runPackJob(workerData as PackJob) });
} catch (error) {
  tell({ kind: 'failed', error: toErrorBody(error) });
}
