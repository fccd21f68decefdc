import { Dict, type Value } from '../template/values.ts';
import { normaliseMessages, RowError, type Repairs } from './messages.ts';
import type { Mapping, RowFormat } from './mapping.ts';
import { parseValue } from './parse.ts';
import { describeType } from './values.ts';

/** A row as the model will meet it. Messages are dictionaries with `role` and `content`. */
export type Example =
  | { kind: 'chat'; messages: Dict[]; tools: Value | undefined; numPromptMessages: number }
  | { kind: 'completion'; prompt: string; completion: string }
  | { kind: 'text'; text: string };

/**
 * Brings a row of a recognised format into the one shape that is rendered, telling every repair.
 * @throws {RowError} with the reason, naming message and field
 */
export function normaliseRow(row: Dict, format: RowFormat, mapping: Mapping, repairs: Repairs): Example {
  switch (format) {
    case 'messages':
    case 'sharegpt':
      return fromMessages(row, mapping, repairs);
    case 'alpaca':
      return fromAlpaca(row);
    case 'completion':
      return fromCompletion(row, mapping, repairs);
    case 'text':
      return { kind: 'text', text: requireText(row, 'text') };
  }
}

/** Renames mapped columns; the file's own names stay where no mapping speaks of them. */
export function applyColumns(row: Dict, columns: Mapping['columns']): Dict {
  const entries = Object.entries(columns);
  if (entries.length === 0) return row;
  const renamed = new Set<Value>(entries.map(([, from]) => from));
  const mapped = Dict.of(Array.from(row.entries()).filter(([name]) => !renamed.has(name)));
  for (const [to, from] of entries) {
    const value = row.get(from);
    if (value !== undefined) mapped.set(to, value);
  }
  return mapped;
}

function fromMessages(row: Dict, mapping: Mapping, repairs: Repairs): Example {
  const key =
    ['messages', 'conversations', 'conversation'].find((name) => row.get(name) !== undefined) ?? 'messages';
  const messages = normaliseMessages(readCell(row.get(key), key, repairs), key, mapping.roles, repairs);
  const system = textOrNone(row, 'system');
  if (system !== '' && messages[0]?.get('role') !== 'system') messages.unshift(message('system', system));
  return { kind: 'chat', messages, tools: readTools(row, repairs), numPromptMessages: 0 };
}

function readTools(row: Dict, repairs: Repairs): Value | undefined {
  const tools = readCell(row.get('tools'), 'tools', repairs);
  if (tools === undefined || tools === null) return undefined;
  if (Array.isArray(tools)) return tools.length > 0 ? tools : undefined;
  throw new RowError(`'tools' is ${describeType(tools)}, not a list`);
}

/** A list in a text cell (CSV, Parquet's string columns) is JSON; an empty cell is nothing. */
function readCell(value: Value | undefined, name: string, repairs: Repairs): Value | undefined {
  if (typeof value !== 'string') return value;
  if (value.trim() === '') return undefined;
  try {
    const parsed = parseValue(value);
    repairs('jsonInCell');
    return parsed;
  } catch (error) {
    throw new RowError(`'${name}' is text that is no JSON: ${(error as Error).message}`);
  }
}

function fromAlpaca(row: Dict): Example {
  const messages: Dict[] = [];
  const system = textOrNone(row, 'system');
  if (system !== '') messages.push(message('system', system));
  const history = row.get('history') ?? [];
  if (!Array.isArray(history))
    throw new RowError(`'history' is ${describeType(history)}, not a list of pairs`);
  for (const [index, pair] of history.entries()) {
    const [question, answer] = Array.isArray(pair) ? pair : [];
    if (typeof question !== 'string' || typeof answer !== 'string') {
      throw new RowError(`entry ${String(index + 1)} of 'history' is no pair of texts`);
    }
    messages.push(message('user', question), message('assistant', answer));
  }
  const instruction = requireText(row, 'instruction');
  const input = textOrNone(row, 'input');
  const output = requireText(row, row.has('output') ? 'output' : 'response');
  messages.push(
    message('user', input === '' ? instruction : `${instruction}\n\n${input}`),
    message('assistant', output),
  );
  return { kind: 'chat', messages, tools: undefined, numPromptMessages: 0 };
}

function fromCompletion(row: Dict, mapping: Mapping, repairs: Repairs): Example {
  const promptName = ['prompt', 'question', 'query', 'input'].find((name) => row.has(name)) ?? 'prompt';
  const completionName =
    ['completion', 'response', 'answer', 'output'].find((name) => row.has(name)) ?? 'completion';
  const prompt = row.get(promptName);
  const completion = row.get(completionName);
  if (typeof prompt === 'string' && typeof completion === 'string')
    return { kind: 'completion', prompt, completion };
  if (Array.isArray(prompt) && Array.isArray(completion)) {
    const before = normaliseMessages(prompt, promptName, mapping.roles, repairs);
    const after = normaliseMessages(completion, completionName, mapping.roles, repairs);
    const tools = readTools(row, repairs);
    return { kind: 'chat', messages: [...before, ...after], tools, numPromptMessages: before.length };
  }
  const types = `'${promptName}' is ${describeType(prompt)}, '${completionName}' is ${describeType(completion)}`;
  throw new RowError(`${types}; both must be text, or both lists of messages`);
}

function requireText(row: Dict, name: string): string {
  const value = row.get(name);
  if (typeof value === 'string') return value;
  throw new RowError(`'${name}' is ${describeType(value)}, not text`);
}

function textOrNone(row: Dict, name: string): string {
  return (row.get(name) ?? null) === null ? '' : requireText(row, name);
}

function message(role: string, content: string): Dict {
  return Dict.of([
    ['role', role],
    ['content', content],
  ]);
}
