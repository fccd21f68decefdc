import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = join(import.meta.dirname, '..', 'material');

/** What is said of one thing: what it is for, how it is done, what goes wrong, what to do later. */
export interface Entry {
  /** With its article, as it stands in a sentence: `a mallet`, `oak`. */
  name: string;
  answers: Record<Aspect, string>;
}
export const aspects = ['for', 'how', 'wrong', 'care'] as const;
export type Aspect = (typeof aspects)[number];

/** Reads `material/<area>.txt`: blocks of `= name` and one line for each aspect. */
export function readEntries(area: string): Entry[] {
  return blocks(`${area}.txt`).map(([heading = '', ...lines]) => {
    const name = heading.replace(/^= /, '');
    const answers: Partial<Record<string, string>> = Object.fromEntries(
      lines.map((line) => line.split(/: (.*)/s, 2) as [string, string]),
    );
    const missing = aspects.filter((aspect) => !answers[aspect]);
    if (missing.length > 0) throw new Error(`${area}.txt: '${name}' lacks ${missing.join(', ')}`);
    return { name, answers: answers as Record<Aspect, string> };
  });
}

/** Reads conversations written out: `> question`, then its answer; a blank line ends a conversation. */
export function readDialogues(file: string): string[][] {
  return blocks(file).map((lines) =>
    lines.map((line, i) => {
      if (line.startsWith('> ') !== (i % 2 === 0)) throw new Error(`${file}: a turn is missing at '${line}'`);
      return line.replace(/^> /, '');
    }),
  );
}

function blocks(file: string): string[][] {
  return readFileSync(join(folder, file), 'utf8')
    .trim()
    .split(/\n{2,}/)
    .map((block) => block.split('\n'));
}
