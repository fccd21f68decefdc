import { statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import {
  DuckDBArrayType,
  DuckDBArrayValue,
  DuckDBBlobValue,
  type DuckDBConnection,
  DuckDBInstance,
  DuckDBListType,
  DuckDBListValue,
  DuckDBMapType,
  DuckDBMapValue,
  DuckDBStructType,
  DuckDBStructValue,
  DuckDBTypeId,
  type DuckDBType,
  type DuckDBValue,
} from '@duckdb/node-api';
import { Dict, Float, normalInt, type Value } from '../template/values.ts';
import { UnreadableFileError, type ReadItem } from './rows.ts';

/**
 * Parquet: rows by their number in the file, nested lists and structs, nulls told from empty lists, 64-bit integers
 * exact. Every field of a struct is there, null or not: the file's schema says so, not the row's author.
 * @throws {UnreadableFileError} where the file is cut short or damaged
 */
export async function* readParquet(
  path: string,
  onBytes: (numBytes: number) => void,
): AsyncGenerator<ReadItem[]> {
  await checkEnd(path);
  const instance = await DuckDBInstance.create(':memory:', { threads: '1', memory_limit: '512MB' });
  const connection = await instance.connect();
  try {
    const name = path.replaceAll("'", "''");
    const ownNames = await columnNames(connection, name);
    const [numRows = 1] = (
      await connection.runAndReadAll(`SELECT count(*)::DOUBLE FROM read_parquet('${name}')`)
    )
      .getRows()
      .map(([count]) => Math.max(1, Number(count)));
    const bytesPerRow = statSync(path).size / numRows;
    const result = await connection.stream(`SELECT * FROM read_parquet('${name}')`);
    // Columns that the folders' names give (lang=de/) come after the file's own.
    const names = result.columnNames().map((given, i) => ownNames[i] ?? given);
    const types = result.columnTypes();
    let row = 0;
    for (
      let chunk = await result.fetchChunk();
      chunk !== null && chunk.rowCount > 0;
      chunk = await result.fetchChunk()
    ) {
      const columns = chunk.getColumns();
      const items: ReadItem[] = [];
      for (let i = 0; i < chunk.rowCount; i++) {
        const value = new Dict();
        for (const [c, column] of columns.entries()) {
          value.set(names[c] ?? '', convert(column[i] ?? null, types[c] as DuckDBType));
        }
        items.push({ at: { row: ++row }, value, nullsAdded: true });
      }
      onBytes(Math.round(bytesPerRow * chunk.rowCount));
      yield items;
    }
  } catch (error) {
    if (error instanceof UnreadableFileError) throw error;
    // The first line; then the query and a mark in it follow.
    const [reason = ''] = (error as Error).message.split('\n', 1);
    throw new UnreadableFileError({ row: 1 }, `the Parquet file cannot be read: ${reason}`);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/**
 * The file's own names of its columns: a query calls the second of `Prompt` and `prompt` by a name of its own making.
 * @throws {UnreadableFileError} where two are equal
 */
async function columnNames(connection: DuckDBConnection, name: string): Promise<string[]> {
  const query = `SELECT name, coalesce(num_children, 0)::INTEGER FROM parquet_schema('${name}')`;
  const [, ...nodes] = (await connection.runAndReadAll(query)).getRows() as [string, number][];
  const names: string[] = [];
  // Depth first: a column is followed by all that it holds.
  for (let i = 0; i < nodes.length;) {
    const column = (nodes[i] as [string, number])[0];
    if (names.includes(column)) {
      throw new UnreadableFileError({ row: 1 }, `the column '${column}' appears twice; rename one`);
    }
    names.push(column);
    for (let open = 1; open > 0 && i < nodes.length; i++) open += (nodes[i] as [string, number])[1] - 1;
  }
  return names;
}

/** A Parquet file ends as it begins; one that does not was cut short. */
async function checkEnd(path: string): Promise<void> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const end = Buffer.alloc(4);
    await file.read(end, 0, 4, Math.max(0, size - 4));
    if (end.toString('latin1') !== 'PAR1') {
      throw new UnreadableFileError({ row: 1 }, 'the Parquet file was cut short: its end is missing');
    }
  } finally {
    await file.close();
  }
}

const floatTypes: ReadonlySet<DuckDBTypeId> = new Set([
  DuckDBTypeId.FLOAT,
  DuckDBTypeId.DOUBLE,
  DuckDBTypeId.DECIMAL,
]);

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Text, where its writer only forgot to say so (old Spark, Impala); else an object, which no field takes for text. */
function convertBytes(blob: DuckDBBlobValue): Value {
  try {
    return utf8.decode(blob.bytes);
  } catch {
    return Dict.of([['bytes', blob.toString()]]);
  }
}

function convert(value: DuckDBValue, type: DuckDBType): Value {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'bigint') return normalInt(value);
  if (typeof value === 'number') return floatTypes.has(type.typeId) ? new Float(value) : value;
  if (value instanceof DuckDBBlobValue) return convertBytes(value);
  if (value instanceof DuckDBListValue && type instanceof DuckDBListType) {
    return value.items.map((item) => convert(item, type.valueType));
  }
  if (value instanceof DuckDBArrayValue && type instanceof DuckDBArrayType) {
    return value.items.map((item) => convert(item, type.valueType));
  }
  if (value instanceof DuckDBStructValue && type instanceof DuckDBStructType) {
    const names = type.entryNames;
    return Dict.of(
      names.map(
        (name, i) => [name, convert(value.entries[name] ?? null, type.entryTypes[i] as DuckDBType)] as const,
      ),
    );
  }
  if (value instanceof DuckDBMapValue && type instanceof DuckDBMapType) {
    return Dict.of(
      value.entries.map((entry) => [String(entry.key), convert(entry.value, type.valueType)] as const),
    );
  }
  return floatTypes.has(type.typeId) ? new Float(Number(value.toString())) : value.toString();
}
