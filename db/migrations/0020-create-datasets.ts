import type { Db } from '../connection.ts';

/** Datasets as imported, and the token caches that hold their examples; several datasets may share a cache. */
export function up(db: Db): void {
  db.exec(`
    CREATE TABLE datasets (
      id TEXT PRIMARY KEY,
      name TEXT NOT NULL,
      createdAtMs INTEGER NOT NULL,
      cacheKey TEXT NOT NULL,
      format TEXT NOT NULL,
      rows INTEGER NOT NULL,
      tokens INTEGER NOT NULL,
      supervisedTokens INTEGER NOT NULL,
      numSkipped INTEGER NOT NULL,
      source TEXT NOT NULL
    ) STRICT;
    CREATE INDEX datasetsByTime ON datasets (createdAtMs DESC);
    CREATE INDEX datasetsByCache ON datasets (cacheKey);

    CREATE TABLE tokenCaches (
      key TEXT PRIMARY KEY,
      createdAtMs INTEGER NOT NULL,
      usedAtMs INTEGER NOT NULL,
      sizeBytes INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX tokenCachesByUse ON tokenCaches (usedAtMs);
  `);
}
