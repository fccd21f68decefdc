import { closeSync, fstatSync, fsyncSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs';
import { TesseraError } from '../contract/errors.ts';

/** The array that holds each dtype; bf16 and fp16 stay raw 16-bit patterns. */
export interface TensorArrays {
  F64: Float64Array;
  F32: Float32Array;
  F16: Uint16Array;
  BF16: Uint16Array;
  I64: BigInt64Array;
  I32: Int32Array;
  I16: Int16Array;
  I8: Int8Array;
  U8: Uint8Array;
  BOOL: Uint8Array;
}
export type TensorDtype = keyof TensorArrays;

const ARRAY_OF = {
  F64: Float64Array,
  F32: Float32Array,
  F16: Uint16Array,
  BF16: Uint16Array,
  I64: BigInt64Array,
  I32: Int32Array,
  I16: Int16Array,
  I8: Int8Array,
  U8: Uint8Array,
  BOOL: Uint8Array,
} as const;

/** One tensor of a file: its shape and where its bytes lie, counted from the end of the header. */
export interface TensorInfo {
  dtype: TensorDtype;
  shape: number[];
  begin: number;
  end: number;
}

/**
 * One tensor to write. `data` is one array, or its pieces in order (so that a shard need not be joined in memory);
 * `shape` defaults to one axis of all the elements.
 */
export interface TensorData<D extends TensorDtype = TensorDtype> {
  dtype: D;
  data: TensorArrays[D] | readonly TensorArrays[D][];
  shape?: readonly number[];
}

/** A file that is no valid safetensors file, or lacks what was asked of it; the message names file and tensor. */
export class SafetensorsError extends TesseraError {
  override name = 'SafetensorsError';
  constructor(path: string, what: string) {
    super('badSafetensors', `${path}: ${what}`, 'The file is damaged or incomplete: make or copy it again.');
  }
}

/** An open safetensors file; tensors are read on demand, whole or in part. Close it when done. */
export class SafetensorsFile {
  readonly path: string;
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  readonly metadata: Readonly<Record<string, string>>;
  readonly #descriptor: number;
  readonly #dataBegin: number;

  /** Opens and checks the header: lengths, offsets, shapes. Nothing of the data is read yet. */
  constructor(path: string) {
    this.path = path;
    this.#descriptor = openSync(path, 'r');
    try {
      const header = readHeader(path, this.#descriptor);
      this.tensors = header.tensors;
      this.metadata = header.metadata;
      this.#dataBegin = header.dataBegin;
    } catch (error) {
      closeSync(this.#descriptor);
      throw error;
    }
  }

  /** The tensor's place and shape; refuses a missing one and one of another dtype, by name. */
  info(name: string, dtype?: TensorDtype): TensorInfo {
    const info = this.tensors.get(name);
    if (!info) throw new SafetensorsError(this.path, `has no tensor '${name}'`);
    if (dtype !== undefined && info.dtype !== dtype) {
      throw new SafetensorsError(this.path, `tensor '${name}' is ${info.dtype}, not ${dtype}`);
    }
    return info;
  }

  /** Reads elements `from` … `to` (exclusive; default: all) of a tensor, counted in row-major order. */
  read<D extends TensorDtype>(name: string, dtype: D, from = 0, to?: number): TensorArrays[D] {
    const info = this.info(name, dtype);
    const { BYTES_PER_ELEMENT: size } = ARRAY_OF[dtype];
    const count = (info.end - info.begin) / size;
    const last = to ?? count;
    if (from < 0 || last > count || from > last) {
      throw new RangeError(`${this.path}: '${name}' has ${count} elements, asked for ${from} … ${last}`);
    }
    const bytes = new Uint8Array((last - from) * size);
    readFully(this.path, this.#descriptor, bytes, this.#dataBegin + info.begin + from * size);
    return new ARRAY_OF[dtype](bytes.buffer) as TensorArrays[D];
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

/** Opens `path`, hands it to `use`, closes it. */
export function withSafetensors<T>(path: string, use: (file: SafetensorsFile) => T): T {
  const file = new SafetensorsFile(path);
  try {
    return use(file);
  } finally {
    file.close();
  }
}

/**
 * Writes a safetensors file: under a temporary name, synced, then renamed, so that `path` is never half a file.
 * Tensors lie by falling element size, so each is aligned to its element as memory maps need.
 */
export function writeSafetensors(
  path: string,
  tensors: Readonly<Record<string, TensorData>>,
  metadata?: Readonly<Record<string, string>>,
): void {
  const entries = Object.entries(tensors)
    .map(([name, tensor]) => layOut(name, tensor))
    .sort((a, b) => b.elementSize - a.elementSize || (a.name < b.name ? -1 : 1));
  const header: Record<string, unknown> = metadata ? { __metadata__: metadata } : {};
  let offset = 0;
  for (const { name, dtype, shape, sizeBytes } of entries) {
    header[name] = { dtype, shape, data_offsets: [offset, offset + sizeBytes] };
    offset += sizeBytes;
  }
  const json = Buffer.from(JSON.stringify(header));
  const padded = Buffer.alloc(Math.ceil(json.length / 8) * 8, ' ');
  json.copy(padded);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));

  const temporary = `${path}.${process.pid}.tmp`;
  try {
    const descriptor = openSync(temporary, 'w');
    try {
      writeFully(descriptor, length);
      writeFully(descriptor, padded);
      for (const { pieces } of entries) {
        for (const piece of pieces) {
          writeFully(descriptor, new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength));
        }
      }
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  renameSync(temporary, path);
}

function layOut(name: string, tensor: TensorData) {
  const pieces = ArrayBuffer.isView(tensor.data) ? [tensor.data] : tensor.data;
  const elementSize = ARRAY_OF[tensor.dtype].BYTES_PER_ELEMENT;
  const sizeBytes = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
  const shape = tensor.shape ?? [sizeBytes / elementSize];
  if (product(shape) * elementSize !== sizeBytes) {
    throw new RangeError(
      `tensor '${name}' holds ${sizeBytes / elementSize} elements, its shape says ${shape.join('×')}`,
    );
  }
  return { name, dtype: tensor.dtype, shape, pieces, elementSize, sizeBytes };
}

function readHeader(path: string, descriptor: number) {
  const fileBytes = fstatSync(descriptor).size;
  if (fileBytes < 8)
    throw new SafetensorsError(path, `is ${fileBytes} bytes long, shorter than any safetensors file`);
  const prefix = new Uint8Array(8);
  readFully(path, descriptor, prefix, 0);
  const headerBytes = new DataView(prefix.buffer).getBigUint64(0, true);
  if (headerBytes > BigInt(fileBytes - 8)) {
    throw new SafetensorsError(
      path,
      `claims a header of ${headerBytes} bytes, but the file has ${fileBytes}`,
    );
  }
  const json = new Uint8Array(Number(headerBytes));
  readFully(path, descriptor, json, 8);
  const dataBegin = 8 + json.length;

  const { __metadata__: metadata, ...entries } = parseHeader(path, json);
  const tensors = new Map<string, TensorInfo>();
  for (const [name, entry] of Object.entries(entries)) tensors.set(name, checkEntry(path, name, entry));
  checkLayout(path, tensors, fileBytes - dataBegin);
  return { tensors, metadata: (metadata ?? {}) as Record<string, string>, dataBegin };
}

function parseHeader(path: string, json: Uint8Array): Record<string, unknown> {
  try {
    const header: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(json));
    if (typeof header === 'object' && header !== null && !Array.isArray(header)) return { ...header };
  } catch {
    // Falls through to the one message: whether UTF-8 or JSON is wrong does not change what to do.
  }
  throw new SafetensorsError(path, 'its header is not a JSON object');
}

function checkEntry(path: string, name: string, entry: unknown): TensorInfo {
  const { dtype, shape, data_offsets: offsets } = (entry ?? {}) as Record<string, unknown>;
  if (typeof dtype !== 'string' || !(dtype in ARRAY_OF)) {
    throw new SafetensorsError(path, `tensor '${name}' has the unknown dtype ${JSON.stringify(dtype)}`);
  }
  if (!isCounts(shape) || !isCounts(offsets) || offsets.length !== 2) {
    throw new SafetensorsError(path, `tensor '${name}' has no valid shape and data_offsets`);
  }
  const [begin, end] = offsets as [number, number];
  const wanted = product(shape) * ARRAY_OF[dtype as TensorDtype].BYTES_PER_ELEMENT;
  if (end - begin !== wanted) {
    throw new SafetensorsError(
      path,
      `tensor '${name}' spans ${end - begin} bytes, its shape needs ${wanted}`,
    );
  }
  return { dtype: dtype as TensorDtype, shape, begin, end };
}

function checkLayout(path: string, tensors: Map<string, TensorInfo>, dataBytes: number): void {
  let offset = 0;
  for (const [name, { begin, end }] of [...tensors].sort(
    (a, b) => a[1].begin - b[1].begin || a[1].end - b[1].end,
  )) {
    if (begin !== offset)
      throw new SafetensorsError(path, `tensor '${name}' overlaps another or leaves a gap`);
    offset = end;
  }
  if (offset !== dataBytes) {
    throw new SafetensorsError(path, `holds ${dataBytes} bytes of data, its header describes ${offset}`);
  }
}

function isCounts(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((n) => Number.isSafeInteger(n) && (n as number) >= 0);
}

function product(shape: readonly number[]): number {
  return shape.reduce((a, b) => a * b, 1);
}

// One call of the file system moves less than 2 GiB; larger tensors take several.
const MAX_IO_BYTES = 1 << 30;

function readFully(path: string, descriptor: number, bytes: Uint8Array, position: number): void {
  let done = 0;
  while (done < bytes.length) {
    const got = readSync(
      descriptor,
      bytes,
      done,
      Math.min(MAX_IO_BYTES, bytes.length - done),
      position + done,
    );
    if (got === 0)
      throw new SafetensorsError(path, `ends at byte ${position + done}, in the middle of a tensor`);
    done += got;
  }
}

function writeFully(descriptor: number, bytes: Uint8Array): void {
  let done = 0;
  while (done < bytes.length) {
    done += writeSync(descriptor, bytes, done, Math.min(MAX_IO_BYTES, bytes.length - done));
  }
}
