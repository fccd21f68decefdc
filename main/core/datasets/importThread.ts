import { rmSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { fromErrorBody, TesseraError } from '../../contract/errors.ts';
import type { CacheManifest } from './cache/tokenCache.ts';
import type { ImportJob, ImportProgress } from './importJob.ts';
import type { WorkerMessage } from './importWorker.ts';

const workerFile = new URL(
  import.meta.url.endsWith('.ts') ? './importWorker.ts' : './importWorker.js',
  import.meta.url,
);

/** The import's own heap; a file that needs more is reported instead of taking the core down. */
const maxHeapMb = 1024;

/**
 * Runs an import in a thread of its own. Aborting the signal ends it at the next batch and leaves nothing behind.
 * @throws {TesseraError} what the import refused, `cancelled`, or `importCrashed`
 */
export function runInThread(
  job: ImportJob,
  onProgress: (progress: ImportProgress) => void,
  signal: AbortSignal,
): Promise<CacheManifest> {
  signal.throwIfAborted();
  const worker = new Worker(workerFile, {
    workerData: job,
    resourceLimits: { maxOldGenerationSizeMb: maxHeapMb },
  });
  const cancel = () => {
    worker.postMessage('cancel');
  };
  signal.addEventListener('abort', cancel, { once: true });
  return new Promise<CacheManifest>((resolve, reject) => {
    worker.on('message', (message: WorkerMessage) => {
      if (message.kind === 'progress') onProgress(message.progress);
      else if (message.kind === 'done') resolve(message.manifest);
      else
        reject(
          signal.aborted
            ? new TesseraError('cancelled', 'the import was cancelled')
            : fromErrorBody(message.error),
        );
    });
    const crash = (why: string) => {
      rmSync(`${job.cacheDir}.partial`, { recursive: true, force: true });
      reject(
        new TesseraError(
          'importCrashed',
          `the import ended unexpectedly: ${why}`,
          'Nothing half-written was kept.',
        ),
      );
    };
    worker.on('error', (error) => {
      crash((error as Error).message);
    });
    worker.on('exit', (code) => {
      if (code !== 0) crash(`exit code ${String(code)}`);
    });
  }).finally(() => {
    signal.removeEventListener('abort', cancel);
  });
}
