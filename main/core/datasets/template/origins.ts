/**
 * Where a rendered character came from: a turn of the chat and a kind of text, packed in one integer.
 * Turn 0 is none. Turns 1…n are the messages in order; later ones stand for stretches of the template
 * (a loop's round, say) of which the message is found out when the render is over.
 */
import { Tagged, isStr, textOf } from './taggedString.ts';
import type { Str } from './taggedString.ts';
import { Dict, Tuple } from './values.ts';
import type { Value } from './values.ts';

export const KIND = {
  /** The template's own text. */
  literal: 0,
  role: 1,
  content: 2,
  reasoning: 3,
  toolCall: 4,
  /** Any other field of a message. */
  field: 5,
  /** A message's text printed in the turn of another message. */
  foreign: 6,
} as const;
export type Kind = (typeof KIND)[keyof typeof KIND];

export function origin(turn: number, kind: Kind): number {
  return turn * 8 + kind;
}

export function turnOf(value: number): number {
  return value >> 3;
}

export function kindOf(value: number): Kind {
  return (value & 7) as Kind;
}

export interface Turn {
  readonly role: string;
  /** Known from the template's structure: a loop over messages, a macro that was given one. */
  readonly isExplicit: boolean;
  /** The number that a loop over numbers is at, to recognise `messages[i]`. */
  readonly loopNumber: number | undefined;
  /** Message of an inferred turn, by `messages[i]`; 0 while unknown. */
  message: number;
  /** Messages whose text was printed while an inferred turn lasted. */
  readonly printed: Set<number>;
}

const ASSISTANT_ROLES = ['assistant', 'model', 'gpt', 'bot', 'ai', 'chatbot'];

export function isAssistantRole(role: string): boolean {
  return ASSISTANT_ROLES.includes(role.toLowerCase());
}

const FIELD_KINDS = new Map<string, Kind>([
  ['role', KIND.role],
  ['from', KIND.role],
  ['content', KIND.content],
  ['value', KIND.content],
  ['text', KIND.content],
  ['reasoning_content', KIND.reasoning],
  ['reasoning', KIND.reasoning],
  ['thinking', KIND.reasoning],
  ['thought', KIND.reasoning],
  ['thoughts', KIND.reasoning],
  ['tool_calls', KIND.toolCall],
  ['function_call', KIND.toolCall],
]);

/** The turns of one render. */
export class Trace {
  readonly turns: Turn[] = [
    { role: '', isExplicit: false, loopNumber: undefined, message: 0, printed: new Set() },
  ];

  /** The messages with the origin of every string in them; anything that is no list of dicts stays as it is. */
  tagMessages(messages: Value): Value {
    if (!Array.isArray(messages)) return messages;
    return messages.map((message) => (message instanceof Dict ? this.#tagMessage(message) : message));
  }

  #tagMessage(message: Dict): Dict {
    const role = roleOf(message);
    const turn = this.add({ role, isExplicit: true, loopNumber: undefined });
    const tagged = new Dict();
    tagged.turn = turn;
    for (const [key, value] of message.entries()) {
      const kind = (isStr(key) ? FIELD_KINDS.get(textOf(key)) : undefined) ?? KIND.field;
      tagged.set(key, tagStrings(value, turn, kind));
    }
    return tagged;
  }

  add(turn: Pick<Turn, 'role' | 'isExplicit' | 'loopNumber'>): number {
    this.turns.push({ ...turn, message: 0, printed: new Set() });
    return this.turns.length - 1;
  }
}

/** The messages with other words wherever the assistant says any. */
export function withOtherSpeech(messages: Value): Value {
  if (!Array.isArray(messages)) return messages;
  return messages.map((message) => {
    if (!(message instanceof Dict) || !isAssistantRole(roleOf(message))) return message;
    return Dict.of(
      [...message.entries()].map(([key, value]) => {
        const kind = (isStr(key) ? FIELD_KINDS.get(textOf(key)) : undefined) ?? KIND.field;
        return [key, kind === KIND.role || kind === KIND.field ? value : lengthened(value)] as const;
      }),
    );
  });
}

function lengthened(value: Value): Value {
  if (isStr(value)) return textOf(value) === '' ? value : `~${textOf(value)}~`;
  if (Array.isArray(value)) return value.map(lengthened);
  if (!(value instanceof Dict)) return value;
  return Dict.of(
    [...value.entries()].map(
      ([key, item]) => [key, key === 'type' || key === 'id' ? item : lengthened(item)] as const,
    ),
  );
}

export function roleOf(message: Dict): string {
  const role = message.get('role') ?? message.get('from') ?? '';
  return isStr(role) ? textOf(role) : '';
}

function tagStrings(value: Value, turn: number, kind: Kind): Value {
  if (typeof value === 'string') return tag(value, turn, kind);
  if (Array.isArray(value)) return value.map((item) => tagStrings(item, turn, kind));
  if (value instanceof Tuple) return new Tuple(value.items.map((item) => tagStrings(item, turn, kind)));
  if (!(value instanceof Dict)) return value;
  const tagged = new Dict();
  const isReasoningPart = ['thinking', 'reasoning'].includes(textOfOr(value.get('type')));
  const inner = kind === KIND.content && isReasoningPart ? KIND.reasoning : kind;
  for (const [key, item] of value.entries()) {
    tagged.set(typeof key === 'string' ? tag(key, turn, inner) : key, tagStrings(item, turn, inner));
  }
  return tagged;
}

function textOfOr(value: Value | undefined): string {
  return value !== undefined && isStr(value) ? textOf(value) : '';
}

function tag(text: string, turn: number, kind: Kind): Str {
  return text === '' ? text : new Tagged(text, [text.length, origin(turn, kind)]);
}
