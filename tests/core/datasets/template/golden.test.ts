import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parsePythonJson } from '../../../../main/core/datasets/pythonJson.ts';
import { chatContext } from '../../../../main/core/datasets/template/chat.ts';
import { TemplateError } from '../../../../main/core/datasets/template/errors.ts';
import { DEFAULT_SUPERVISION } from '../../../../main/core/datasets/template/supervision.ts';
import { compileTemplate } from '../../../../main/core/datasets/template/template.ts';

const FOLDER = new URL('../../../fixtures/templates/', import.meta.url);

interface Row {
  template: string;
  name: string;
  input: string;
  text?: string;
  error?: string;
  supervised?: [number, number][];
}

function rows(file: string): Row[] {
  return JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')) as Row[];
}

function load(name: string): ReturnType<typeof compileTemplate> {
  return compileTemplate(readFileSync(new URL(`${name}.jinja`, FOLDER), 'utf8'));
}

describe('rendering equals what Python renders', () => {
  it.each(rows('golden.json'))('$template: $name', (row) => {
    const render = (): string => load(row.template).render(chatContext(parsePythonJson(row.input)));
    if (row.text !== undefined) {
      expect(render()).toBe(row.text);
      return;
    }
    let error: unknown;
    try {
      render();
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(TemplateError);
    expect((error as TemplateError).describe()).toBe(row.error);
  });
});

describe('supervision by origin', () => {
  it.each(rows('golden-supervision.json'))('$template: $name', (row) => {
    const context = chatContext(parsePythonJson(row.input));
    const result = load(row.template).renderSupervised(context, DEFAULT_SUPERVISION);
    expect(result.text).toBe(row.text);
    expect(result.supervised).toEqual(row.supervised);
  });
});
