import type { Random } from '../../../main/core/random.ts';

export interface Message {
  role: 'system' | 'user' | 'assistant';
  content: string;
  /** The thinking before an answer, as templates of the Qwen family take it. */
  reasoning_content?: string;
}

/** One conversation; `topic` is for the statistics and is not written out. */
export interface Chat {
  topic: string;
  messages: Message[];
}

export function user(content: string): Message {
  return { role: 'user', content };
}

export function assistant(content: string, reasoning?: string): Message {
  return { role: 'assistant', content, ...(reasoning !== undefined && { reasoning_content: reasoning }) };
}

/** Questions and answers by turns. */
export function turns(...contents: string[]): Message[] {
  return contents.map((content, i) => (i % 2 === 0 ? user(content) : assistant(content)));
}

/** A number as people write it: at most `digits` decimals, none that say nothing, thousands apart. */
export function num(value: number, digits = 1): string {
  return value.toLocaleString('en', { maximumFractionDigits: digits });
}

/** One of several ways to say the same. */
export function say(random: Random, ...ways: string[]): string {
  return random.pick(ways);
}
