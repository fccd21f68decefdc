import { Dict, type Value } from '../template/values.ts';
import { roleAliases, templateRoles } from './mapping.ts';
import { parseValue } from './parse.ts';
import { describeType } from './values.ts';

/** Why a row is skipped. */
export class RowError extends Error {
  override name = 'RowError';
}

/** Called once for each repair, with its code. */
export type Repairs = (code: string) => void;

/**
 * Brings a list of messages into `role`/`content` form; fields beyond those stay as they are.
 * @throws {RowError} naming message and field
 */
export function normaliseMessages(
  list: Value | undefined,
  name: string,
  roles: Record<string, string>,
  repairs: Repairs,
): Dict[] {
  if (!Array.isArray(list)) throw new RowError(`'${name}' is ${describeType(list)}, not a list of messages`);
  if (list.length === 0) throw new RowError(`'${name}' is an empty list`);
  return list.map((item, index) => normaliseMessage(item, `message ${String(index + 1)}`, roles, repairs));
}

function normaliseMessage(item: Value, where: string, roles: Record<string, string>, repairs: Repairs): Dict {
  if (!(item instanceof Dict)) throw new RowError(`${where} is ${describeType(item)}, not an object`);
  const isShareGpt = !item.has('role') && item.has('from');
  const written = item.get(isShareGpt ? 'from' : 'role');
  if (typeof written !== 'string') throw new RowError(`${where} has no role: it is ${describeType(written)}`);
  const message = Dict.of([['role', '']]);
  for (const [key, value] of item.entries()) {
    if (isShareGpt && key === 'from') continue;
    message.set(isShareGpt && key === 'value' ? 'content' : key, value);
  }
  if (isShareGpt && written === 'function_call') return fromFunctionCall(message, where, repairs);
  const role = mapRole(written, where, roles);
  if (role !== written && !isShareGpt) repairs('roleMapped');
  message.set('role', role);
  repairToolCalls(message, where, repairs);
  repairContent(message, `${where} (${role})`, repairs);
  checkReasoning(message, `${where} (${role})`);
  return message;
}

function mapRole(written: string, where: string, roles: Record<string, string>): string {
  const mapped = roles[written];
  if (mapped !== undefined) return mapped;
  if (templateRoles.has(written)) return written;
  const alias =
    roleAliases[written.toLowerCase()] ??
    (templateRoles.has(written.toLowerCase()) ? written.toLowerCase() : undefined);
  if (alias !== undefined) return alias;
  throw new RowError(
    `${where} has the role '${written.slice(0, 60)}', which is not known; map it (in Columns, or with --role ${written.slice(0, 60)}=user)`,
  );
}

function repairContent(message: Dict, where: string, repairs: Repairs): void {
  const content = message.get('content');
  if (typeof content === 'string') return;
  if (content === null || content === undefined) {
    if (!hasToolCalls(message)) throw new RowError(`the content of ${where} is ${describeType(content)}`);
    message.set('content', '');
    repairs('nullContentEmptied');
    return;
  }
  if (!Array.isArray(content))
    throw new RowError(`the content of ${where} is ${describeType(content)}, not text`);
  const texts = content.map((part) => textOfPart(part, where));
  message.set('content', texts.join(''));
  repairs('textPartsJoined');
}

function checkReasoning(message: Dict, where: string): void {
  const reasoning = message.get('reasoning_content') ?? '';
  if (typeof reasoning !== 'string')
    throw new RowError(`the reasoning_content of ${where} is ${describeType(reasoning)}, not text`);
}

function textOfPart(part: Value, where: string): string {
  if (typeof part === 'string') return part;
  if (part instanceof Dict) {
    const text = part.get('text');
    const type = part.get('type') ?? 'text';
    if (type === 'text' && typeof text === 'string') return text;
    if (typeof type === 'string' && type !== 'text') {
      throw new RowError(`the content of ${where} holds a part of type '${type}': only text can be learned`);
    }
  }
  throw new RowError(`the content of ${where} holds a part that is no text`);
}

function hasToolCalls(message: Dict): boolean {
  const calls = message.get('tool_calls');
  return Array.isArray(calls) && calls.length > 0;
}

/** Arguments that are text holding a JSON object become that object: templates walk through them. */
function repairToolCalls(message: Dict, where: string, repairs: Repairs): void {
  const calls = message.get('tool_calls');
  if (calls === undefined || calls === null || calls === '') return;
  if (!Array.isArray(calls))
    throw new RowError(`the tool_calls of ${where} are ${describeType(calls)}, not a list`);
  const repaired = calls.map((call) => {
    if (!(call instanceof Dict))
      throw new RowError(`a tool call of ${where} is ${describeType(call)}, not an object`);
    const inner = call.get('function');
    if (inner instanceof Dict) return withField(call, 'function', withParsedArguments(inner, where, repairs));
    if (inner !== undefined && inner !== null)
      throw new RowError(`the function of a tool call of ${where} is ${describeType(inner)}, not an object`);
    return withParsedArguments(call, where, repairs);
  });
  message.set('tool_calls', repaired);
}

function withParsedArguments(call: Dict, where: string, repairs: Repairs): Dict {
  const name = call.get('name');
  if (typeof name !== 'string')
    throw new RowError(`the name of a tool call of ${where} is ${describeType(name)}, not text`);
  const written = call.get('arguments');
  if (typeof written !== 'string') return call;
  const parsed = written.trim() === '' ? new Dict() : parseArguments(written);
  if (!(parsed instanceof Dict)) {
    throw new RowError(`the arguments of the call '${name}' in ${where} are no JSON object`);
  }
  repairs('toolArgumentsParsed');
  return withField(call, 'arguments', parsed);
}

function withField(dict: Dict, key: string, value: Value): Dict {
  return Dict.of([...dict.entries(), [key, value]]);
}

function parseArguments(text: string): Value | undefined {
  try {
    return parseValue(text);
  } catch {
    return undefined;
  }
}

/** ShareGPT's own turn for a tool call: its value is the call as JSON. */
function fromFunctionCall(message: Dict, where: string, repairs: Repairs): Dict {
  const content = message.get('content');
  const call = typeof content === 'string' ? parseArguments(content) : undefined;
  const calls = Array.isArray(call) ? call : [call];
  if (!calls.every((inner) => inner instanceof Dict))
    throw new RowError(`the function_call of ${where} is no JSON object`);
  message.set('role', 'assistant');
  message.set('content', '');
  message.set(
    'tool_calls',
    calls.map((inner) =>
      Dict.of([
        ['type', 'function'],
        ['function', inner],
      ]),
    ),
  );
  repairToolCalls(message, where, repairs);
  return message;
}
