import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { writeWhole } from '../../main/core/writeWhole.ts';
import { tempFolder } from './datasets/fixtures.ts';

test('a file is written in place of the old one, behind its link, however long its name', async () => {
  const folder = tempFolder();
  const file = join(folder, 'x'.repeat(255));
  writeFileSync(file, 'old');
  symlinkSync(file, join(folder, 'link'));
  await writeWhole(join(folder, 'link'), 'new');
  expect(readFileSync(file, 'utf8')).toBe('new');
  expect(lstatSync(join(folder, 'link')).isSymbolicLink()).toBe(true);
  expect(readdirSync(folder)).toHaveLength(2);
});

test('what keeps it from being written is said, and nothing is left', async () => {
  await expect(writeWhole('/dev/full', 'x')).rejects.toThrow('/dev/full was not written: its disk is full');
  const folder = tempFolder();
  mkdirSync(join(folder, 'a'));
  for (const name of ['a', 'missing/b', 'y'.repeat(256)])
    await expect(writeWhole(join(folder, name), 'x')).rejects.toThrow(`${name} cannot be written`);
  expect(readdirSync(folder)).toEqual(['a']);
});
