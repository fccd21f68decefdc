import { describe, expect, it } from 'vitest';
import {
  ago,
  bytes,
  compactCount,
  decimal,
  duration,
  integer,
  percent,
  scientific,
  sentence,
} from '../../renderer/format.ts';

describe('numbers as they are written', () => {
  it('groups thousands and keeps decimals fixed', () => {
    expect(integer(1234567.6)).toBe('1,234,568');
    expect([decimal(1.5, 3), decimal(12345.678, 1), decimal(-0.5, 2), decimal(-0.04, 1)]).toEqual([
      '1.500',
      '12,345.7',
      '−0.50',
      '0.0',
    ]);
  });
  it('writes a dash for what is not there', () => {
    expect([decimal(undefined, 2), decimal(Number.NaN, 2), decimal(Infinity, 2)]).toEqual(['–', '–', '–']);
  });
  it('shortens counts at their borders', () => {
    expect([999, 1000, 12_345, 999_999, 1_000_000, 4_560_000, 1.2e9].map(compactCount)).toEqual([
      '999',
      '1.00 k',
      '12.3 k',
      '1.00 M',
      '1.00 M',
      '4.56 M',
      '1.20 B',
    ]);
  });
  it('writes bytes by powers of 1,024', () => {
    expect([0, 1023, 1024, 1536, 2 ** 30, 5 * 2 ** 50].map(bytes)).toEqual([
      '0 B',
      '1023 B',
      '1.0 KiB',
      '1.5 KiB',
      '1.0 GiB',
      '5120.0 TiB',
    ]);
  });
  it('writes durations with two parts at most, padded', () => {
    expect([0, 400, 9_949, 42_000, 59_600, 396_000, 3_599_700, 7_500_000].map(duration)).toEqual([
      '0.0 s',
      '0.4 s',
      '9.9 s',
      '42 s',
      '1 min 00 s',
      '6 min 36 s',
      '1 h 00 min',
      '2 h 05 min',
    ]);
  });
  it('says how long ago, and names days beyond yesterday', () => {
    const now = Date.UTC(2026, 10, 30, 12);
    const minutes = (count: number) => ago(now - count * 60_000, now);
    expect([0.5, 5, 180, 25 * 60].map(minutes)).toEqual(['now', '5 min ago', '3 h ago', 'yesterday']);
    expect(minutes(3 * 24 * 60)).toBe('27 Nov');
    expect(minutes(370 * 24 * 60)).toBe('25 Nov 2025');
    expect(ago(now + 10_000, now)).toBe('now');
  });
  it('makes sentences of messages', () => {
    expect(sentence('no GPU was found')).toBe('No GPU was found.');
    expect(sentence('Stopped!')).toBe('Stopped!');
  });
  it('writes learning rates and shares', () => {
    expect([scientific(2e-5), scientific(0)]).toEqual(['2.0e-5', '0']);
    expect([percent(0.98234), percent(1, 0)]).toEqual(['98.2 %', '100 %']);
  });
});
