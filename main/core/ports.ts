import type { Socket } from 'node:net';
import { deserialize, serialize } from 'node:v8';
import type { Port } from '../contract/port.ts';

const headerBytes = 4;
/** No call needs a frame near this; what claims more is not a peer of ours. */
export const maxFrameBytes = 256 * 1024 * 1024;

/** Frames over a socket: a 32-bit little-endian length, then the V8-serialised value (typed arrays survive). */
export function socketPort(socket: Socket): Port {
  return {
    send: (frame) => {
      if (socket.destroyed || !socket.writable) return;
      const body = serialize(frame);
      const header = Buffer.allocUnsafe(headerBytes);
      header.writeUInt32LE(body.length);
      socket.cork();
      socket.write(header);
      socket.write(body);
      socket.uncork();
    },
    start: (onFrame, onClose) => {
      let reason: Error | undefined;
      const split = frameSplitter(onFrame);
      socket.on('data', (chunk: Buffer) => {
        try {
          split(chunk);
        } catch (error) {
          socket.destroy(error as Error);
        }
      });
      socket.on('error', (error) => {
        reason = error;
      });
      socket.on('close', () => {
        onClose(reason);
      });
    },
    close: () => {
      socket.end();
    },
  };
}

function frameSplitter(onFrame: (frame: unknown) => void): (chunk: Buffer) => void {
  let chunks: Buffer[] = [];
  let numBytes = 0;
  let wanted = headerBytes;
  return (chunk) => {
    chunks.push(chunk);
    numBytes += chunk.length;
    if (numBytes < wanted) return;
    let rest = chunks.length === 1 ? chunk : Buffer.concat(chunks, numBytes);
    for (;;) {
      wanted = headerBytes;
      if (rest.length < wanted) break;
      const length = rest.readUInt32LE();
      if (length > maxFrameBytes) throw new Error(`a frame claims ${String(length)} bytes`);
      wanted = headerBytes + length;
      if (rest.length < wanted) break;
      onFrame(deserialize(rest.subarray(headerBytes, wanted)));
      rest = rest.subarray(wanted);
    }
    chunks = rest.length === 0 ? [] : [rest];
    numBytes = rest.length;
  };
}

/** The channel of `child_process.fork`, from either end. */
export function processPort(peer: NodeJS.Process | import('node:child_process').ChildProcess): Port {
  return {
    send: (frame) => {
      if (peer.connected) peer.send?.(frame);
    },
    start: (onFrame, onClose) => {
      peer.on('message', onFrame);
      peer.on('disconnect', () => {
        onClose();
      });
    },
    close: () => {
      if (peer.connected) peer.disconnect();
    },
  };
}
