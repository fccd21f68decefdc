import { hash } from 'node:crypto';
import { Fingerprints } from './fingerprints.ts';
import type { Warning } from './problems.ts';
import type { Place } from './readers/rows.ts';
import type { RenderedExample } from './tokenise/renderExample.ts';

/**
 * Counts rows that say what an earlier row said: exactly, or after normalisation (case, white space). They are kept;
 * what to do about them is the user's choice. Memory: about 16 bytes a row.
 */
export class DuplicateCounter {
  private readonly exact = new Tally('duplicateRow');
  private readonly similar = new Tally('nearDuplicateRow');
  /** Of each normalised text the first one that had it. */
  private readonly firsts = new Fingerprints();
  /** Other spellings of a text that was there already. */
  private readonly spellings = new Fingerprints();

  add({ pieces }: RenderedExample, file: number, at: Place): void {
    const text = pieces.map((piece) => piece.text).join('\u0000');
    const own = digest(text);
    const normal = digest(text.toLowerCase().replace(/\s+/g, ' '));
    const first = this.firsts.put(normal.key, own.check);
    if (first === undefined) return;
    const isKnown = first === own.check || this.spellings.put(own.key, own.check) !== undefined;
    (isKnown ? this.exact : this.similar).add(file, at);
  }

  list(files: string[]): Warning[] {
    return [this.exact, this.similar].flatMap((tally) => tally.warning(files));
  }
}

/** 52 and 32 bits: among ten million rows one in about ninety imports has a wrong match. Counts, not decisions. */
function digest(text: string): { key: number; check: number } {
  const bytes = hash('sha1', text, 'buffer');
  return { key: bytes.readUIntBE(0, 6) * 16 + (bytes.readUInt8(6) & 15), check: bytes.readUInt32BE(8) };
}

class Tally {
  private readonly code: string;
  private count = 0;
  private first: { file: number; at: Place } | undefined;

  constructor(code: string) {
    this.code = code;
  }

  add(file: number, at: Place): void {
    this.count += 1;
    this.first ??= { file, at };
  }

  warning(files: string[]): Warning[] {
    if (this.first === undefined) return [];
    const { file, at } = this.first;
    return [{ code: this.code, count: this.count, firstAt: { file: files[file] ?? '', ...at } }];
  }
}
