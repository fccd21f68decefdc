import type { Random } from '../../../main/core/random.ts';
import { turns, type Chat } from './chat.ts';
import { readEntries, type Aspect, type Entry } from './material.ts';

/** How one asks for an aspect: as the first question of a chat (with the name), and as a later one. */
type Questions = Record<Aspect, { first: string[]; later: string[] }>;

const common: Questions = {
  for: { first: ['What should I know first about {x}?'], later: ['And {x}?', 'What about {x}?'] },
  how: {
    first: ['How do I go about {x}?'],
    later: ['How is it done?', 'What is the right way?', 'How do I do it properly?'],
  },
  wrong: {
    first: ['What usually goes wrong with {x}?', 'Is there a common mistake with {x}?'],
    later: [
      'What should I watch out for?',
      'What can go wrong?',
      'Is there a catch?',
      'Which mistakes do people make?',
    ],
  },
  care: {
    first: ['Do you have a tip about {x}?', 'Anything I should remember about {x}?'],
    later: ['Anything else?', 'Any other advice?', 'And one more tip?'],
  },
};

/** Ways to ask that suit one area better; the common ones are asked as well. */
const areas: Record<string, Partial<Questions>> = {
  tools: {
    for: {
      first: ['What is {x} good for?', 'When do I need {x}?', 'What can I do with {x}?'],
      later: ['And {x}?'],
    },
    how: {
      first: ['How do I use {x}?', 'Show me how to work with {x}.'],
      later: ['How do I use it well?', 'How is it used?'],
    },
    care: {
      first: ['How do I look after {x}?'],
      later: ['How do I keep it in good shape?', 'Does it need any care?'],
    },
  },
  materials: {
    for: {
      first: ['What is {x} used for?', 'Tell me about {x}.'],
      later: ['And {x}?', 'How about {x} then?'],
    },
    how: { first: ['How do I work with {x}?'], later: ['How do I work with it?'] },
    care: { first: ['What does {x} need to last?'], later: ['How do I look after it?', 'And later on?'] },
  },
  plants: {
    for: {
      first: ['I would like {x} in my garden. Where do I begin?', 'When is the time for {x}?'],
      later: ['And {x}?'],
    },
    how: { first: ['What is the right way with {x}?'], later: ['How do I go about it?'] },
    care: {
      first: ['How do I look after {x}?'],
      later: ['And later in the year?', 'How do I care for it after that?'],
    },
  },
  kitchen: {
    for: {
      first: ['Tell me the basics about {x}.', 'I want to learn about {x}. How do I start?'],
      later: ['And {x}?'],
    },
  },
  bicycle: {
    for: { first: ['What does {x} do?', 'Explain {x} to me.'], later: ['And {x}?'] },
    how: { first: ['How do I deal with {x} myself?'], later: ['How do I work on it?'] },
    care: { first: ['How do I look after {x}?'], later: ['How do I keep it going?'] },
  },
  knots: {
    for: { first: ['What is {x} good for?', 'When would I use {x}?'], later: ['And {x}?'] },
    how: { first: ['How do I tie {x}?'], later: ['How do I tie it?', 'Take me through it slowly.'] },
    wrong: { first: ['What is the weakness of {x}?'], later: ['When should I not use it?'] },
  },
  sewing: {
    for: { first: ['Tell me about {x}.', 'What do I need to know of {x}?'], later: ['And {x}?'] },
  },
  electricity: {
    for: { first: ['What does {x} do?', 'Please explain {x}.'], later: ['And {x}?'] },
    wrong: { first: ['What is dangerous about {x}?'], later: ['What is the danger in it?'] },
  },
};

/**
 * Chats from the entries of all areas. Each answer is used once: an entry becomes one long chat, shares one with a
 * second entry, or is asked about on two occasions.
 */
export function entryChats(random: Random): Chat[] {
  return Object.entries(areas).flatMap(([area, own]) => {
    const ask = asker(own, random);
    const chats: Chat[] = [];
    const entries = random.shuffle(readEntries(area));
    for (let entry = entries.pop(); entry; entry = entries.pop()) {
      const way = random.uniform();
      const second = way < 0.2 ? entries.pop() : undefined;
      for (const part of way < 0.5 ? [plan(entry)] : halves(entry, random)) {
        const lines = [...part, ...(second ? plan(second) : [])].flatMap((step, i) => ask(step, i));
        chats.push({ topic: area, messages: turns(...lines) });
      }
    }
    return chats;
  });
}

interface Step {
  entry: Entry;
  aspect: Aspect;
}

function plan(entry: Entry): Step[] {
  return (['for', 'how', 'wrong', 'care'] as const).map((aspect) => ({ entry, aspect }));
}

function halves(entry: Entry, random: Random): Step[][] {
  const [a, b, c, d] = plan(entry) as [Step, Step, Step, Step];
  return random.pick([
    [
      [a, b],
      [c, d],
    ],
    [
      [a, c],
      [b, d],
    ],
    [
      [a, d],
      [b, c],
    ],
  ]);
}

/** Turns a step into question and answer; a new entry in the middle of a chat is asked for by its name. */
function asker(own: Partial<Questions>, random: Random) {
  return ({ entry, aspect }: Step, index: number): [string, string] => {
    const specific = own[aspect] ?? common[aspect];
    const ways = index === 0 ? specific.first : specific.later;
    const question = random.pick(ways).replaceAll('{x}', entry.name);
    return [plural(question, entry.name), entry.answers[aspect]];
  };
}

// `What does spokes do?` and its like, for the few names that are plurals.
function plural(question: string, name: string): string {
  if (/^(an?|the) /.test(name) || !/[^s]s$/.test(name)) return question;
  return question
    .replace(/^What does /, 'What do ')
    .replace(/^What is (.*) good for/, 'What are $1 good for')
    .replace(/\bit\b/, 'them')
    .replace(/How is them/, 'How are they')
    .replace(/Does them need/, 'Do they need');
}
