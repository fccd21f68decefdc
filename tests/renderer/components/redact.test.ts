import { expect, test } from 'vitest';
import { redact } from '../../../renderer/components/redact.ts';

test('of a path only its last part is kept, on every system', () => {
  expect(redact('cannot read /home/ada/secret/chats.jsonl: gone')).toBe('cannot read …/chats.jsonl: gone');
  expect(redact('C:\\Users\\Ada\\chats.csv, line 3')).toBe('…/chats.csv, line 3');
  expect(redact('3 of 4 steps')).toBe('3 of 4 steps');
});
