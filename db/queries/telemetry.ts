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

/** @param rows in the order of source and field: '', which holds the moments, comes first of each source */
function withTimes(rows: Row[]): FieldChunk[] {
  const times = new Map<string, Uint32Array>();
  return rows.flatMap(({ source, field, startMs, atMs, data }) => {
    const chunk = `${source} ${String(startMs)}`;
    if (field === '') {
      times.set(chunk, new Uint32Array(copy(atMs)));
      return [];
    }
    const offsets = times.get(chunk) ?? new Uint32Array(0);
    const moments = Float64Array.from(offsets, (offset) => startMs + offset);
    return { source, field, values: new Float64Array(copy(data)), atMs: moments };
  });
}

/** What was measured of the machine while a run trained. */
export function telemetryQueries(db: Db) {
  const insert = db.prepare('INSERT OR REPLACE INTO runTelemetry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)');
  const read = db.prepare(
    'SELECT source, field, startMs, atMs, data FROM runTelemetry WHERE runId = ? ORDER BY source, field, startMs',
  );
  const readTotals = db.prepare(
    `SELECT source, field, startMs, atMs, data FROM runTelemetry
     WHERE runId = ? AND field IN ('', 'energyJ', 'memoryBytes', 'powerW') AND source LIKE 'gpu%' ORDER BY source, field, startMs`,
  );
  const readOne = db.prepare(
    `SELECT source, field, startMs, atMs, data FROM runTelemetry WHERE runId = ? AND source = ?
     ORDER BY source, field, startMs`,
  );
  const sources = db
    .prepare('SELECT source FROM runTelemetry WHERE runId = ? GROUP BY source ORDER BY source')
    .pluck();
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
    sources: (runId: string) => sources.all(runId) as string[],
    /** In the order of source, field and time; of all sources, or of one. */
    read: (runId: string, source?: string): FieldChunk[] => {
      const rows = source === undefined ? read.all(runId) : readOne.all(runId, source);
      return withTimes(rows as Row[]);
    },
    /** What the totals of all GPUs are made of, without the other dozen fields. */
    readTotals: (runId: string): FieldChunk[] => withTimes(readTotals.all(runId) as Row[]),
  };
}

export type TelemetryQueries = ReturnType<typeof telemetryQueries>;
