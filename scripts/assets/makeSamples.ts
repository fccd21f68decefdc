/**
 * Composes the bundled sample chats, assets/samples/chats.jsonl, from the hand-written material beside this script
 * and from sums with drawn numbers. The same seed gives the same file; an answer that comes twice stops the script.
 *
 *   node scripts/assets/makeSamples.ts [FILE]
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Random } from '../../main/core/random.ts';
import { calculations } from './samples/calculations.ts';
import { turns, type Chat, type Message } from './samples/chat.ts';
import { entryChats } from './samples/entries.ts';
import { readDialogues } from './samples/material.ts';

const SEED = 2026;
const SUMS_OF_A_KIND = 9;
const target = process.argv[2] ?? join(import.meta.dirname, '..', '..', 'assets', 'samples', 'chats.jsonl');

const systemPrompts = [
  'You are the patient voice of a workshop. Answer briefly and correctly.',
  'You help people who build and repair things. Safety comes first.',
  'Answer as an experienced craftsman would: short, friendly, exact.',
  'You teach beginners. Use simple words and say why.',
];

/** Two answers are the same when they differ only in case, white space or punctuation. */
function normalise(answer: string): string {
  return answer.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '');
}

function answersOf({ messages }: Chat): string[] {
  return messages.filter(({ role }) => role === 'assistant').map(({ content }) => normalise(content));
}

/** Draws sums until each kind has given its share; one whose answer is there already is drawn again. */
function sumChats(random: Random, used: Set<string>): Chat[] {
  return Object.entries(calculations).flatMap(([topic, calculate]) => {
    const chats: Chat[] = [];
    for (let tries = 0; chats.length < SUMS_OF_A_KIND; tries++) {
      if (tries > 500) throw new Error(`the sum '${topic}' gives too few different answers`);
      const chat = { topic, messages: calculate(random) };
      const answers = answersOf(chat);
      if (answers.some((answer) => used.has(answer))) continue;
      for (const answer of answers) used.add(answer);
      chats.push(chat);
    }
    return chats;
  });
}

function withSystemPrompt(messages: Message[], random: Random): Message[] {
  if (random.uniform() > 0.12) return messages;
  return [{ role: 'system', content: random.pick(systemPrompts) }, ...messages];
}

function makeSamples(): Chat[] {
  const random = new Random(SEED);
  const written = readDialogues('dialogues.txt').map((lines) => ({
    topic: 'dialogue',
    messages: turns(...lines),
  }));
  const chats: Chat[] = [...written, ...entryChats(random)];
  const used = new Set<string>();
  for (const answer of chats.flatMap(answersOf)) {
    if (used.has(answer)) throw new Error(`an answer comes twice: '${answer}'`);
    used.add(answer);
  }
  chats.push(...sumChats(random, used));
  return random
    .shuffle(chats)
    .map(({ topic, messages }) => ({ topic, messages: withSystemPrompt(messages, random) }));
}

const chats = makeSamples();
mkdirSync(dirname(target), { recursive: true });
writeFileSync(target, chats.map(({ messages }) => `${JSON.stringify({ messages })}\n`).join(''));
const words = chats.flatMap(({ messages }) => messages).flatMap(({ content }) => content.split(/\s+/)).length;
console.log(`${chats.length} chats, ${chats.flatMap(answersOf).length} answers, ${words} words in ${target}`);
