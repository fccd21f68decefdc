import type { Readable } from 'node:stream';

/** Calls back with each line of a stream; a line that has no end within `limit` characters is cut there. */
export function onLines(stream: Readable, limit: number, onLine: (line: string) => void): void {
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    rest += chunk;
    let end: number;
    while ((end = rest.indexOf('\n')) >= 0) {
      onLine(rest.slice(0, end));
      rest = rest.slice(end + 1);
    }
    if (rest.length > limit) {
      onLine(rest);
      rest = '';
    }
  });
  stream.on('end', () => {
    if (rest !== '') onLine(rest);
  });
}
