import type { Db } from '../connection.ts';

/** Values of one source over a span of time: columns as long as `offsetsMs`, NaN where it did not say. */
export interface TelemetryChunk {
  /** UTC. */
  startMs: number;
  offsetsMs: number[];
  fields: Map<string, number[]>;
}

export interface FieldChunk {
  source: string;
  field: string;
  /** UTC, one for each value. */
  atMs: Float64Array;
  values: Float64Array;
}

interface Row {
  source: string;
  field: string;
  startMs: number;
  atMs: Uint8Array;
  data: Uint8Array;
}

const none = new Uint8Array(0);
const toBytes = (values: Float64Array | Uint32Array) => new Uint8Array(values.buffer);
const copy = (bytes: Uint8Array) => bytes.slice().buffer;

/** What was measured of the machine while a run trained. */
export function telemetryQueries(db: Db) {
  const insert = db.prepare('INSERT OR REPLACE INTO runTelemetry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)');
  const read = db.prepare(
    'SELECT source, field, startMs, atMs, data FROM runTelemetry WHERE runId = ? ORDER BY source, field, startMs',
  );
  const put = db.transaction((runId: string, source: string, chunk: TelemetryChunk) => {
    const { startMs, offsetsMs, fields } = chunk;
    const times = toBytes(Uint32Array.from(offsetsMs));
    insert.run(runId, source, '', startMs, offsetsMs.length, null, null, times, none);
    for (const [field, values] of fields) {
      const numbers = values.filter((value) => Number.isFinite(value));
      const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
      const range = numbers.length > 0 ? [low, high] : [null, null];
      const data = toBytes(Float64Array.from(values));
      insert.run(runId, source, field, startMs, values.length, ...range, none, data);
    }
  });
  return {
    /** Writes a chunk, over the shorter one of the same beginning. */
    put: (runId: string, source: string, chunk: TelemetryChunk) => {
      put.immediate(runId, source, chunk);
    },
    /** In the order of source, field and time. */
    read: (runId: string): FieldChunk[] => {
      const times = new Map<string, Uint32Array>();
      return (read.all(runId) as Row[]).flatMap(({ source, field, startMs, atMs, data }) => {
        // '' comes before every other field of its source.
        if (field === '') {
          times.set(`${source} ${String(startMs)}`, new Uint32Array(copy(atMs)));
          return [];
        }
        const values = new Float64Array(copy(data));
        const offsets = times.get(`${source} ${String(startMs)}`) ?? new Uint32Array(0);
        return { source, field, values, atMs: Float64Array.from(offsets, (offset) => startMs + offset) };
      });
    },
  };
}

export type TelemetryQueries = ReturnType<typeof telemetryQueries>;
