import type { Db } from '../connection.ts';

export interface DatasetRow {
  id: string;
  name: string;
  createdAtMs: number;
  cacheKey: string;
  format: string;
  rows: number;
  tokens: number;
  supervisedTokens: number;
  numSkipped: number;
  /** JSON: what was imported and how; enough to make the cache again. */
  source: string;
}

export interface TokenCacheRow {
  key: string;
  createdAtMs: number;
  usedAtMs: number;
  sizeBytes: number;
}

/** Adds a dataset, or brings the one of this id up to date. */
export function saveDataset(db: Db, row: DatasetRow): void {
  db.prepare(
    `INSERT INTO datasets (id, name, createdAtMs, cacheKey, format, rows, tokens, supervisedTokens, numSkipped, source)
     VALUES (@id, @name, @createdAtMs, @cacheKey, @format, @rows, @tokens, @supervisedTokens, @numSkipped, @source)
     ON CONFLICT (id) DO UPDATE SET name = excluded.name, cacheKey = excluded.cacheKey, format = excluded.format,
       rows = excluded.rows, tokens = excluded.tokens, supervisedTokens = excluded.supervisedTokens,
       numSkipped = excluded.numSkipped, source = excluded.source`,
  ).run(row);
}

/** Newest first. */
export function listDatasets(db: Db): DatasetRow[] {
  return db.prepare('SELECT * FROM datasets ORDER BY createdAtMs DESC, id').all() as DatasetRow[];
}

export function findDataset(db: Db, id: string): DatasetRow | undefined {
  return db.prepare('SELECT * FROM datasets WHERE id = ?').get(id) as DatasetRow | undefined;
}

export function deleteDataset(db: Db, id: string): void {
  db.prepare('DELETE FROM datasets WHERE id = ?').run(id);
}

export function countDatasetsOfCache(db: Db, cacheKey: string): number {
  return db.prepare('SELECT count(*) FROM datasets WHERE cacheKey = ?').pluck().get(cacheKey) as number;
}

export function saveTokenCache(db: Db, row: TokenCacheRow): void {
  db.prepare(
    `INSERT INTO tokenCaches (key, createdAtMs, usedAtMs, sizeBytes) VALUES (@key, @createdAtMs, @usedAtMs, @sizeBytes)
     ON CONFLICT (key) DO UPDATE SET usedAtMs = excluded.usedAtMs, sizeBytes = excluded.sizeBytes`,
  ).run(row);
}

export function findTokenCache(db: Db, key: string): TokenCacheRow | undefined {
  return db.prepare('SELECT * FROM tokenCaches WHERE key = ?').get(key) as TokenCacheRow | undefined;
}

/** Least recently used first. */
export function listTokenCaches(db: Db): TokenCacheRow[] {
  return db.prepare('SELECT * FROM tokenCaches ORDER BY usedAtMs').all() as TokenCacheRow[];
}

export function deleteTokenCache(db: Db, key: string): void {
  db.prepare('DELETE FROM tokenCaches WHERE key = ?').run(key);
}
