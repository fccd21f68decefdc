import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { deserialize, serialize } from 'node:v8';
import { crc32 } from 'node:zlib';
import { isPacked, type PackedRows } from '../../contract/rows.ts';
import { summaryFields } from '../../contract/runs.ts';

/** The list of runs as it was when the database was given this mark; see migration 0085. */
interface Snapshot {
  mark: string;
  packed: PackedRows;
}

const checksumBytes = 4;

/** Undefined where there is none, where it has another mark, or where it is damaged. */
export function readSnapshot(path: string, mark: string): PackedRows | undefined {
  try {
    const file = readFileSync(path);
    const body = file.subarray(checksumBytes);
    if (crc32(body) !== file.readUInt32LE()) return undefined;
    const snapshot = deserialize(body) as Snapshot;
    if (snapshot.mark !== mark || !isPacked(snapshot.packed, summaryFields)) return undefined;
    return snapshot.packed;
  } catch {
    return undefined;
  }
}

/** @throws what keeps the file from being written */
export function writeSnapshot(path: string, snapshot: Snapshot): void {
  const body = serialize(snapshot);
  const header = Buffer.alloc(checksumBytes);
  header.writeUInt32LE(crc32(body));
  const partial = `${path}.partial`;
  const file = openSync(partial, 'w');
  try {
    writeSync(file, header);
    for (let at = 0; at < body.length;) at += writeSync(file, body, at);
    fsyncSync(file);
  } catch (error) {
    closeSync(file);
    rmSync(partial, { force: true });
    throw error;
  }
  closeSync(file);
  renameSync(partial, path);
}
