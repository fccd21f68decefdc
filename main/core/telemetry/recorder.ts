import type { TelemetryChunk, TelemetryQueries } from '../../../db/queries/telemetry.ts';
import type { Telemetry } from '../../contract/telemetry.ts';
import type { Log } from '../log.ts';

const chunkMs = 60_000;
const flushMs = 5_000;
/** Chunks that could not be written wait; beyond this many the oldest is let go. */
const maxWaiting = 60;

interface OpenChunk extends TelemetryChunk {
  source: string;
}

/** Keeps what the machine says while a run trains, in chunks of a minute that are written every five seconds. */
export class TelemetryRecorder {
  private readonly queries: TelemetryQueries;
  private readonly log: Log;
  private runId: string | undefined;
  private open = new Map<string, OpenChunk>();
  private waiting: { runId: string; chunk: OpenChunk }[] = [];
  private flushedAtMs = 0;
  private hasFailed = false;

  constructor(queries: TelemetryQueries, log: Log) {
    this.queries = queries;
    this.log = log;
  }

  /** @param runId the run that trains; undefined: none, what was open is written */
  add(runId: string | undefined, { atMs, gpus, host }: Telemetry, isHostNew: boolean): void {
    if (runId !== this.runId) {
      this.close();
      this.runId = runId;
    }
    if (runId === undefined) return;
    // One that CUDA does not show has no part in a run.
    for (const gpu of gpus)
      if (gpu.device !== undefined) this.put(gpu.device.replace('cuda:', 'gpu'), atMs, gpu);
    if (isHostNew) this.put('host', atMs, host);
    if (Math.abs(atMs - this.flushedAtMs) >= flushMs) {
      this.flushedAtMs = atMs;
      this.flush();
    }
  }

  /** Writes what is open and begins anew. */
  close(): void {
    this.flush();
    this.open.clear();
  }

  private put(source: string, atMs: number, values: Record<string, unknown>): void {
    let chunk = this.open.get(source);
    // A clock that jumped back begins a chunk of its own: moments within one only grow.
    const last = chunk?.offsetsMs.at(-1) ?? 0;
    if (chunk === undefined || atMs < chunk.startMs + last || atMs >= chunk.startMs + chunkMs) {
      if (chunk !== undefined && this.runId !== undefined) this.waiting.push({ runId: this.runId, chunk });
      chunk = { source, startMs: Math.round(atMs), offsetsMs: [], fields: new Map() };
      this.open.set(source, chunk);
    }
    const { offsetsMs, fields, startMs } = chunk;
    for (const [field, value] of Object.entries(values)) {
      if (typeof value !== 'number' || field === 'index' || fields.has(field)) continue;
      fields.set(field, new Array<number>(offsetsMs.length).fill(Number.NaN));
    }
    offsetsMs.push(Math.max(0, Math.round(atMs - startMs)));
    for (const [field, column] of fields) {
      const value = values[field];
      column.push(typeof value === 'number' ? value : Number.NaN);
    }
  }

  private flush(): void {
    const { runId } = this;
    const open = runId === undefined ? [] : [...this.open.values()].map((chunk) => ({ runId, chunk }));
    this.waiting = this.waiting.slice(-maxWaiting);
    try {
      for (const { runId: id, chunk } of [...this.waiting, ...open])
        this.queries.put(id, chunk.source, chunk);
      this.waiting = [];
      this.hasFailed = false;
    } catch (error) {
      if (!this.hasFailed) this.log(`telemetry waits in memory: ${String(error)}`);
      this.hasFailed = true;
    }
  }
}
