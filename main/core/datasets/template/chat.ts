/** The variables that transformers gives a chat template, from a row as it stands: nothing is repaired. */
import { TemplateError, typeError, valueError } from './errors.ts';
import type { Context } from './template.ts';
import { isStr, textOf } from './taggedString.ts';
import { Dict, typeName } from './values.ts';
import type { Value } from './values.ts';

const TOKEN_NAMES = [
  'bos_token',
  'eos_token',
  'unk_token',
  'pad_token',
  'sep_token',
  'cls_token',
  'mask_token',
];

/**
 * The context of one chat: `{messages, tools?, documents?, bos_token?, eos_token?, arguments?}`. Absent tools and
 * documents are None, absent tokens undefined. `templateArguments` come on top of the row's own.
 * Throws TemplateError for what transformers refuses before it renders.
 */
export function chatContext(row: Value, templateArguments: Readonly<Record<string, Value>> = {}): Context {
  if (!(row instanceof Dict)) throw typeError(`a row must be an object with messages, not ${typeName(row)}`);
  const messages = row.get('messages');
  if (messages === undefined) throw new TemplateError('KeyError', "'messages'");
  if (Array.isArray(messages) && messages.length === 0) {
    throw valueError('transformers refuses an empty conversation before it renders');
  }
  const context: Record<string, Value> = { add_generation_prompt: false };
  for (const name of TOKEN_NAMES) {
    const token = row.get(name);
    if (token !== undefined && token !== null) context[name] = token;
  }
  if (row.get('add_generation_prompt') !== undefined)
    context['add_generation_prompt'] = row.get('add_generation_prompt') ?? false;
  const own = row.get('arguments');
  if (own !== undefined && own !== null) Object.assign(context, namedValues(own));
  Object.assign(context, templateArguments);
  return { ...context, messages, tools: row.get('tools') ?? null, documents: row.get('documents') ?? null };
}

function namedValues(value: Value): Record<string, Value> {
  if (!(value instanceof Dict)) throw typeError(`arguments must be an object, not ${typeName(value)}`);
  return Object.fromEntries(
    [...value.entries()].map(([name, item]) => [isStr(name) ? textOf(name) : '', item]),
  );
}
