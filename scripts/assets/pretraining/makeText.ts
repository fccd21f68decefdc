/**
 * Writes the text from which the bundled model learns English before it meets the sample chats: conversations drawn
 * by a seed from the lessons beside this script, and the entries of the Jargon File (public domain; Debian's
 * dict-jargon). Nothing of the sample chats is in it.
 *
 *   node scripts/assets/pretraining/makeText.ts OUT.jsonl [HELD-OUT.jsonl]
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { Random } from '../../../main/core/random.ts';
import type { Message } from '../samples/chat.ts';
import { lessons } from './lessons.ts';

const SEED = 411;
const LESSONS = 9_000;
const HELD_OUT_SHARE = 0.03;
const dictionary = '/usr/share/dictd/jargon.dict.dz';
const vulgar = /\b(fuck|shit|crap|damn|piss|sex|arse)\w*/i;

type Row = { messages: Message[] } | { text: string };

function lessonRows(random: Random): Row[] {
  const kinds = Object.values(lessons);
  return Array.from({ length: LESSONS }, (_, i) => {
    const lesson = kinds[i % kinds.length];
    if (!lesson) throw new Error('there are no lessons');
    return { messages: lesson(random) };
  });
}

/** Entries of the dictionary as plain paragraphs: heads, pronunciations and references are taken off. */
function dictionaryRows(): Row[] {
  return gunzipSync(readFileSync(dictionary))
    .toString('utf8')
    .split(/\n(?=\S)/)
    .map((entry) =>
      entry
        .split('\n\n')
        .slice(1)
        .map((paragraph) =>
          paragraph
            .replace(/\s+/g, ' ')
            .replace(/\{ ?([^}]*)\}/g, '$1')
            .trim(),
        )
        .filter((paragraph) => /^[“A-Z0-9].*[.!?)”]$/.test(paragraph) && !vulgar.test(paragraph))
        .join('\n'),
    )
    .filter((text) => text.length > 80 && !/https?:|[\t|<>\\]{2}/.test(text))
    .map((text) => ({ text }));
}

const [out = 'pretraining.jsonl', heldOut] = process.argv.slice(2);
const random = new Random(SEED);
const rows = random.shuffle([...lessonRows(random), ...dictionaryRows()]);
const numHeldOut = heldOut === undefined ? 0 : Math.round(rows.length * HELD_OUT_SHARE);
const write = (path: string, some: Row[]) =>
  writeFileSync(path, some.map((row) => `${JSON.stringify(row)}\n`).join(''));
write(out, rows.slice(numHeldOut));
if (heldOut !== undefined) write(heldOut, rows.slice(0, numHeldOut));
console.log(
  `${rows.length - numHeldOut} rows in ${out}${heldOut === undefined ? '' : `, ${numHeldOut} in ${heldOut}`}`,
);
