import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

interface Row {
  messages: { role: string; content: string }[];
}

const committed = readFileSync('assets/samples/chats.jsonl', 'utf8');
const rows = committed
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as Row);

test('the committed chats are what the script makes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'samples-'));
  try {
    const path = join(folder, 'chats.jsonl');
    execFileSync(process.execPath, ['scripts/assets/makeSamples.ts', path]);
    expect(readFileSync(path, 'utf8') === committed).toBe(true);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('there are at least 600 chats, most with several turns, short ones and long ones', () => {
  const answers = rows.map(({ messages }) => messages.filter(({ role }) => role === 'assistant').length);
  expect(rows.length).toBeGreaterThanOrEqual(600);
  expect(answers.filter((count) => count > 1).length).toBeGreaterThan(rows.length * 0.9);
  const words = rows.map(
    ({ messages }) =>
      messages
        .map((m) => m.content)
        .join(' ')
        .split(' ').length,
  );
  expect(Math.min(...words)).toBeLessThan(8);
  expect(Math.max(...words)).toBeGreaterThan(200);
});

test('user and assistant take turns and the assistant has the last word', () => {
  for (const { messages } of rows) {
    const roles = messages.map(({ role }) => role).filter((role, i) => !(i === 0 && role === 'system'));
    expect(roles).toEqual(roles.map((_, i) => (i % 2 === 0 ? 'user' : 'assistant')));
    expect(roles.length % 2).toBe(0);
    for (const { content } of messages) {
      expect(content).toBe(content.trim());
      expect(content).toMatch(/^[^{}]*\S[^{}]*$/);
      expect(content).not.toMatch(/undefined|NaN|Infinity|\d\.\d{5}/);
    }
  }
});

test('no answer comes twice after normalisation', () => {
  const seen = new Map<string, string>();
  for (const { content, role } of rows.flatMap(({ messages }) => messages)) {
    if (role !== 'assistant') continue;
    const key = content.toLowerCase().replace(/[\s\p{P}\p{S}]+/gu, '');
    expect(seen.get(key), content).toBeUndefined();
    seen.set(key, content);
  }
});
