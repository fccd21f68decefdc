import { parentPort, workerData } from 'node:worker_threads';
import { toErrorBody, type ErrorBody } from '../../contract/errors.ts';
import type { CacheManifest } from './cache/tokenCache.ts';
import { runImportJob, type ImportJob, type ImportProgress } from './importJob.ts';
import { describeFileError } from './readers/files.ts';

/** What the import thread tells; to it goes one message, 'cancel'. */
export type WorkerMessage =
  | { kind: 'progress'; progress: ImportProgress }
  | { kind: 'done'; manifest: CacheManifest }
  | { kind: 'failed'; error: ErrorBody };

const abort = new AbortController();
const job = workerData as ImportJob;

function tell(message: WorkerMessage): void {
  parentPort?.postMessage(message);
}

parentPort?.once('message', () => {
  abort.abort();
});

const reportEveryMs = 100;
let reportedAtMs = 0;

try {
  const manifest = await runImportJob(
    job,
    (progress) => {
      if (performance.now() - reportedAtMs < reportEveryMs) return;
      reportedAtMs = performance.now();
      tell({ kind: 'progress', progress });
    },
    abort.signal,
  );
  tell({ kind: 'done', manifest });
} catch (error) {
  const path = (error as NodeJS.ErrnoException).path ?? job.cacheDir;
  tell({ kind: 'failed', error: toErrorBody(describeFileError(error, path)) });
}
parentPort?.close();
