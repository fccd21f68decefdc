import { describe, expect, it, vi } from 'vitest';
import type { RowPreview } from '../../../main/contract/datasets.ts';
import { rateOf } from '../../../renderer/stores/importRate.ts';
import { oneLine } from '../../../renderer/views/datasets/oneLine.ts';
import { groupReasons, problemsCsv } from '../../../renderer/views/datasets/problemsCsv.ts';
import { createRowPages } from '../../../renderer/views/datasets/rowPages.ts';

const row = (index: number): RowPreview => {
  return { index, file: '', kind: 'chat', tokens: 1, supervised: 1, prompt: '', answer: String(index) };
};

describe('pages of rows', () => {
  it('are fetched once as they come into sight, and tell of their arrival', async () => {
    const fetchRows = vi.fn((indices: number[]) => Promise.resolve(indices.map(row)));
    const pages = createRowPages(
      (position) => (position < 250 ? position : undefined),
      fetchRows,
      () => undefined,
    );
    pages.want(60, 130);
    pages.want(65, 120);
    expect(pages.at(95)).toBeUndefined();
    await vi.waitFor(() => {
      expect(pages.version.value).toBe(2);
    });
    expect(fetchRows).toHaveBeenCalledTimes(2);
    expect(pages.at(95)?.index).toBe(95);
    expect(pages.at(249)).toBeUndefined();
  });

  it('that failed are asked for again', async () => {
    const onError = vi.fn();
    let isBroken = true;
    const fetchRows = (indices: number[]) =>
      isBroken ? Promise.reject(new Error('gone')) : Promise.resolve(indices.map(row));
    const pages = createRowPages((position) => position, fetchRows, onError);
    pages.want(0, 10);
    await vi.waitFor(() => {
      expect(onError).toHaveBeenCalledOnce();
    });
    isBroken = false;
    pages.want(0, 10);
    await vi.waitFor(() => {
      expect(pages.at(3)?.index).toBe(3);
    });
  });
});

it('a cell shows a text on one line', () => {
  expect(oneLine('  a\n\n b\nc ')).toBe('a ↵ b ↵ c');
});

it('problems become a CSV that keeps commas, quotes and lines, and starts no formula', () => {
  const csv = problemsCsv([
    { file: '/a,b.jsonl', line: 3, reason: 'says "no"' },
    { file: '/c.json', row: 7, reason: '=1+1\nx' },
  ]);
  expect(csv).toBe('file,line,row,reason\r\n"/a,b.jsonl",3,,"says ""no"""\r\n/c.json,,7,"\'=1+1\nx"\r\n');
});

it('reasons that differ in numbers and names are one', () => {
  const reasons = ["message 1 has the role 'x'", "message 12 has the role 'y'", 'no JSON'].map((reason) => ({
    file: 'f',
    reason,
  }));
  expect(groupReasons(reasons)).toEqual([
    { reason: "message 1 has the role 'x'", count: 2 },
    { reason: 'no JSON', count: 1 },
  ]);
});

it('the rate of an import is that of its last seconds', () => {
  const samples = [{ atMs: 0, value: 0 }];
  expect(rateOf(samples)).toBeUndefined();
  for (let second = 1; second <= 20; second++)
    samples.push({ atMs: second * 1000, value: second < 10 ? 0 : second * 100 });
  expect(rateOf(samples)).toBeCloseTo(100);
  expect(samples.length).toBeLessThan(10);
});
