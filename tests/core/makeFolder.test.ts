import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeFolder } from '../../main/core/makeFolder.ts';

const root = mkdtempSync(join(tmpdir(), 'tessera-folder-'));
afterAll(() => {
  rmSync(root, { recursive: true, force: true });
});

test('makes what is missing above it, and accepts what is there', () => {
  makeFolder(join(root, 'a/b/c'));
  makeFolder(join(root, 'a/b/c'));
  expect(existsSync(join(root, 'a/b/c'))).toBe(true);
});

test.runIf(process.platform === 'linux')(
  'fails where the file system has no such place, instead of trying forever',
  () => {
    expect(() => {
      makeFolder('/proc/no-such-home/below');
    }).toThrow(/ENOENT/);
  },
);
