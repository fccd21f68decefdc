import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parsePythonJson } from '../../../../main/core/datasets/pythonJson.ts';
import { chatContext } from '../../../../main/core/datasets/template/chat.ts';
import { TemplateError } from '../../../../main/core/datasets/template/errors.ts';
import { DEFAULT_SUPERVISION } from '../../../../main/core/datasets/template/supervision.ts';
import { compileTemplate, type Template } from '../../../../main/core/datasets/template/template.ts';
import type { Dict } from '../../../../main/core/datasets/template/values.ts';

/** A template and a chat by name, the text that Python's Jinja2 gives (null: it fails, and how), what is learned. */
type Case = [template: string, chat: string, text: string | null, learned: string[] | string];

const folder = new URL('../../../fixtures/templates/', import.meta.url);
/** Made by scripts/makeFamilies.ts, of chats of which the numbers stay as they are written. */
const cases = JSON.parse(readFileSync(new URL('families.json', folder), 'utf8')) as Case[];
const chats = parsePythonJson(readFileSync(new URL('chats.json', folder), 'utf8')) as Dict;
/** When the texts were made: some templates print the day. */
const now = new Date(2026, 6, 5, 9, 5, 7);

describe('templates in the style of many families, on chats with tools, reasoning and evil text', () => {
  it.each([...new Set(cases.map(([template]) => template))])('%s', (template) => {
    const source = readFileSync(new URL(`families/${template}.jinja`, folder), 'utf8');
    let compiled: Template | undefined;
    for (const [, chat, text, learned] of cases.filter(([name]) => name === template)) {
      const context = chatContext(chats.get(chat) ?? null);
      const render = () =>
        (compiled ??= compileTemplate(source)).renderSupervised(context, DEFAULT_SUPERVISION, now);
      if (text === null) {
        expect(render, `${chat}: ${String(learned)}`).toThrow(TemplateError);
        continue;
      }
      const rendered = render();
      const points = Array.from(rendered.text);
      const spans = rendered.supervised.map(([from, to]) => points.slice(from, to).join(''));
      expect([rendered.text, spans], chat).toEqual([text, learned]);
    }
  });
});
