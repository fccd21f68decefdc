import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { importArgs, type ImportArgs, type InterruptedImport } from '../../contract/datasets.ts';

/**
 * A note on disk for every import that is going on: what is found there by another core ended with the one that died.
 * The same request has the same note, so that importing again takes it away.
 */
export class ImportNotes {
  private readonly dir: string;
  private readonly going = new Map<string, number>();

  /** @param dir made with the first import */
  constructor(dir: string) {
    this.dir = dir;
  }

  /** @returns to be called when the import is over, however it ended: who asked for it is told then */
  begin(args: ImportArgs): () => void {
    const text = JSON.stringify(args);
    const key = createHash('sha256').update(text).digest('hex').slice(0, 16);
    this.going.set(key, (this.going.get(key) ?? 0) + 1);
    this.write(key, JSON.stringify({ startedAtMs: Date.now(), args }));
    return () => {
      const left = (this.going.get(key) ?? 1) - 1;
      if (left > 0) this.going.set(key, left);
      else {
        this.going.delete(key);
        this.forget(key);
      }
    };
  }

  /** Imports of cores that died, oldest first. */
  interrupted(): InterruptedImport[] {
    return this.names()
      .map((name) => name.slice(0, -noteSuffix.length))
      .filter((key) => !this.going.has(key))
      .flatMap((key) => this.read(key))
      .sort((a, b) => a.startedAtMs - b.startedAtMs);
  }

  forget(key: string): void {
    rmSync(this.pathOf(key), { force: true });
  }

  private pathOf(key: string): string {
    return join(this.dir, `${key}${noteSuffix}`);
  }

  private names(): string[] {
    try {
      return readdirSync(this.dir).filter((name) => name.endsWith(noteSuffix));
    } catch {
      return [];
    }
  }

  /** Without a note the import goes on: a disk that is full will be told by the import itself. */
  private write(key: string, text: string): void {
    try {
      mkdirSync(this.dir, { recursive: true });
      writeFileSync(`${this.pathOf(key)}.tmp`, text);
      renameSync(`${this.pathOf(key)}.tmp`, this.pathOf(key));
    } catch {
      rmSync(`${this.pathOf(key)}.tmp`, { force: true });
    }
  }

  /** A note that cannot be read says nothing any more. */
  private read(key: string): InterruptedImport[] {
    try {
      const { startedAtMs, args } = JSON.parse(readFileSync(this.pathOf(key), 'utf8')) as InterruptedImport;
      return [{ key, startedAtMs, args: importArgs.parse(args) }];
    } catch {
      this.forget(key);
      return [];
    }
  }
}

const noteSuffix = '.import.json';
