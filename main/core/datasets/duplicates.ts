import { hash } from 'node:crypto';
import type { Warning } from './problems.ts';
import type { Place } from './readers/rows.ts';
import type { RenderedExample } from './tokenise/renderExample.ts';

/**
 * Counts rows that say what an earlier row said: exactly, or after normalisation (case, white space). They are kept;
 * what to do about them is the user's choice.
 */
export class DuplicateCounter {
  private readonly exact = new Seen('duplicateRow');
  private readonly similar = new Seen('nearDuplicateRow');

  add({ pieces }: RenderedExample, file: number, at: Place): void {
    const text = pieces.map((piece) => piece.text).join('\u0000');
    if (this.exact.add(text, file, at)) return;
    this.similar.add(text.toLowerCase().replace(/\s+/g, ' '), file, at);
  }

  list(files: string[]): Warning[] {
    return [this.exact, this.similar].flatMap((seen) => seen.warning(files));
  }
}

class Seen {
  private readonly code: string;
  private readonly hashes = new Set<number>();
  private count = 0;
  private first: { file: number; at: Place } | undefined;

  constructor(code: string) {
    this.code = code;
  }

  /** 48 bits tell ten million rows apart with one wrong match in about six imports; counts, not decisions. */
  add(text: string, file: number, at: Place): boolean {
    const key = hash('sha1', text, 'buffer').readUIntBE(0, 6);
    if (!this.hashes.has(key)) {
      this.hashes.add(key);
      return false;
    }
    this.count += 1;
    this.first ??= { file, at };
    return true;
  }

  warning(files: string[]): Warning[] {
    if (this.first === undefined) return [];
    const { file, at } = this.first;
    return [{ code: this.code, count: this.count, firstAt: { file: files[file] ?? '', ...at } }];
  }
}
