import type { Db } from '../connection.ts';

export interface NoteRow {
  id: number;
  step: number;
  atMs: number;
  text: string;
}

export interface SampleRow {
  step: number;
  position: number;
  prompt: string;
  text: string;
}

export interface SavedSearchRow {
  id: number;
  name: string;
  query: string;
}

/** Notes on a run's time line, what it answered as it learned, and searches that were kept. */
export function noteQueries(db: Db) {
  return {
    notes: (runId: string) =>
      db
        .prepare('SELECT id, step, atMs, text FROM runNotes WHERE runId = ? ORDER BY step, id')
        .all(runId) as NoteRow[],
    addNote: (runId: string, note: Omit<NoteRow, 'id'>): number =>
      Number(
        db
          .prepare('INSERT INTO runNotes (runId, step, atMs, text) VALUES (?, ?, ?, ?)')
          .run(runId, note.step, note.atMs, note.text).lastInsertRowid,
      ),
    /** False where the run has no such note. */
    editNote: (runId: string, id: number, text: string): boolean =>
      db.prepare('UPDATE runNotes SET text = ? WHERE id = ? AND runId = ?').run(text, id, runId).changes > 0,
    removeNote: (runId: string, id: number): boolean =>
      db.prepare('DELETE FROM runNotes WHERE id = ? AND runId = ?').run(id, runId).changes > 0,
    samples: (runId: string) =>
      db
        .prepare(
          'SELECT step, position, prompt, text FROM runSamples WHERE runId = ? ORDER BY step, position',
        )
        .all(runId) as SampleRow[],
    addSample: (runId: string, { step, position, prompt, text }: SampleRow) => {
      db.prepare('INSERT OR REPLACE INTO runSamples VALUES (?, ?, ?, ?, ?)').run(
        runId,
        step,
        position,
        prompt,
        text,
      );
    },
    savedSearches: () =>
      db
        .prepare('SELECT id, name, query FROM savedSearches ORDER BY createdAtMs, id')
        .all() as SavedSearchRow[],
    saveSearch: (name: string, query: string, atMs: number) => {
      db.prepare(
        `INSERT INTO savedSearches (name, query, createdAtMs) VALUES (?, ?, ?)
         ON CONFLICT (name) DO UPDATE SET query = excluded.query`,
      ).run(name, query, atMs);
    },
    removeSearch: (name: string): boolean =>
      db.prepare('DELETE FROM savedSearches WHERE name = ?').run(name).changes > 0,
  };
}

export type NoteQueries = ReturnType<typeof noteQueries>;
