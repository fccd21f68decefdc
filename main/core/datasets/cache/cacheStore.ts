import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Db } from '../../../../db/connection.ts';
import {
  deleteTokenCache,
  findTokenCache,
  listTokenCaches,
  saveTokenCache,
} from '../../../../db/queries/datasets.ts';
import { manifestName, readManifest, type CacheManifest } from './tokenCache.ts';

/** A cache that is being read: while it is held, nothing removes it. */
export interface CacheLease {
  dir: string;
  manifest: CacheManifest;
  release: () => void;
}

/** The home's token caches, one folder each named by its key; beyond the budget the least recently used go first. */
export class CacheStore {
  private readonly db: Db;
  private readonly root: string;
  private budgetBytes: number;
  private readonly leases = new Map<string, number>();

  /** What an import that died left behind is removed here: the core of a home is the only writer. */
  constructor(db: Db, root: string, budgetBytes: number) {
    this.db = db;
    this.root = root;
    this.budgetBytes = budgetBytes;
    for (const name of readdirSync(root).filter((entry) => entry.endsWith('.partial'))) {
      rmSync(join(root, name), { recursive: true, force: true });
    }
  }

  /** Holds from the next cache on. */
  setBudget(budgetBytes: number): void {
    this.budgetBytes = budgetBytes;
  }

  dirOf(key: string): string {
    return join(this.root, key);
  }

  has(key: string): boolean {
    return existsSync(join(this.dirOf(key), manifestName));
  }

  sizeOf(key: string): number {
    return findTokenCache(this.db, key)?.sizeBytes ?? 0;
  }

  /** Records a cache that was just written and makes room for it. */
  add(manifest: CacheManifest): void {
    const now = Date.now();
    const { key, sizeBytes } = manifest;
    saveTokenCache(this.db, { key, createdAtMs: now, usedAtMs: now, sizeBytes });
    this.evict(key);
  }

  /** @throws {TesseraError} `badCache` */
  lease(key: string): CacheLease {
    const dir = this.dirOf(key);
    const manifest = readManifest(dir);
    saveTokenCache(this.db, {
      key,
      createdAtMs: Date.now(),
      usedAtMs: Date.now(),
      sizeBytes: manifest.sizeBytes,
    });
    this.leases.set(key, (this.leases.get(key) ?? 0) + 1);
    let isHeld = true;
    const release = () => {
      if (!isHeld) return;
      isHeld = false;
      this.leases.set(key, (this.leases.get(key) ?? 1) - 1);
    };
    return { dir, manifest, release };
  }

  isInUse(key: string): boolean {
    return (this.leases.get(key) ?? 0) > 0;
  }

  /** @returns false where it is in use and stays */
  remove(key: string): boolean {
    if (this.isInUse(key)) return false;
    rmSync(this.dirOf(key), { recursive: true, force: true });
    deleteTokenCache(this.db, key);
    return true;
  }

  private evict(newest: string): void {
    const caches = listTokenCaches(this.db);
    let total = caches.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    for (const { key, sizeBytes } of caches) {
      if (total <= this.budgetBytes) return;
      if (key !== newest && this.remove(key)) total -= sizeBytes;
    }
  }
}
