import { readFileSync } from 'node:fs';
import { TesseraError } from '../../contract/errors.ts';
import { describeFileError } from '../datasets/readers/files.ts';

const MAX_LENGTH = 2 ** 31 - 1;

/**
 * Reads example lengths in tokens, one a line; blank lines do not count.
 * @throws {TesseraError} naming the file, and the line that holds no length
 */
export function readLengths(path: string): Int32Array {
  const lengths: number[] = [];
  readText(path)
    .split('\n')
    .forEach((line, i) => {
      const text = line.trim();
      if (text === '') return;
      const length = /^\d+$/.test(text) ? Number(text) : NaN;
      if (!(length <= MAX_LENGTH)) {
        throw new TesseraError(
          'badLength',
          `${path}:${i + 1}: '${text.slice(0, 40)}' is no length in tokens`,
          'Give one whole number from 0 up on each line.',
        );
      }
      lengths.push(length);
    });
  if (lengths.length === 0) {
    throw new TesseraError('noExamples', `${path} holds no lengths`, 'Give one whole number on each line.');
  }
  return Int32Array.from(lengths);
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw describeFileError(error, path);
  }
}
