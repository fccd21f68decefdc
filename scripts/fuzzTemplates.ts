/**
 * Compares our template renderer with Python's Jinja2 on random templates: `node scripts/fuzzTemplates.ts
 * [--seed N] [--count N]`. Needs python3 with jinja2. Prints every difference; exits 1 if there is one.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { parsePythonJson } from '../main/core/datasets/pythonJson.ts';
import { TemplateError } from '../main/core/datasets/template/errors.ts';
import { DEFAULT_SUPERVISION } from '../main/core/datasets/template/supervision.ts';
import { compileTemplate } from '../main/core/datasets/template/template.ts';
import { Dict } from '../main/core/datasets/template/values.ts';
import type { Value } from '../main/core/datasets/template/values.ts';

interface Case {
  readonly template: string;
  readonly text?: string;
  readonly error?: string;
}

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '5000' },
    show: { type: 'string', default: '20' },
    errors: { type: 'boolean', default: false },
  },
});

function ours(template: string, context: Record<string, Value>): { text?: string; error?: string } {
  try {
    const compiled = compileTemplate(template);
    const text = compiled.render(context);
    // The variables stand in a message too, so that origins run through the same operations.
    const message = Dict.of([['role', 'user'], ...Object.entries(context)]);
    const supervised = compiled.renderSupervised({ ...taggedContext(context, message) }, DEFAULT_SUPERVISION);
    return supervised.text === text ? { text } : { error: 'the traced render differs' };
  } catch (error) {
    if (error instanceof TemplateError) return { error: error.describe() };
    throw error;
  }
}

function taggedContext(context: Record<string, Value>, message: Dict): Record<string, Value> {
  return { ...context, messages: [message] };
}

/** With --errors the exception's class has to be Python's too. */
function sameError(wanted: string | undefined, got: string | undefined): boolean {
  if (got === undefined || !options.errors) return got !== undefined;
  return wanted?.split(':')[0] === got.split(':')[0];
}

function stringEntries(dict: Dict): [string, Value][] {
  return Array.from(dict.entries()).filter((entry): entry is [string, Value] => typeof entry[0] === 'string');
}

/** Jinja works constants out beforehand, by another path: `{{ 1[:2] }}` is then undefined, `{{ n[:2] }}` an error. */
function isFolded(error: string | undefined): boolean {
  return /^TypeError: ('(int|float|bool|NoneType)' object is not subscriptable|unhashable type: 'slice')$/.test(
    error ?? '',
  );
}

async function main(): Promise<number> {
  const script = new URL('fuzzTemplates.py', import.meta.url).pathname;
  const python = spawn('python3', [script, options.seed, options.count], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let context: Record<string, Value> | undefined;
  let numCases = 0;
  const differences: string[] = [];
  for await (const line of createInterface({ input: python.stdout })) {
    if (!context) {
      const { variables } = JSON.parse(line) as { variables: string };
      const parsed = parsePythonJson(variables);
      context = parsed instanceof Dict ? Object.fromEntries(stringEntries(parsed)) : {};
      continue;
    }
    const wanted = JSON.parse(line) as Case;
    const got = ours(wanted.template, context);
    numCases++;
    const isSame =
      wanted.text === undefined
        ? sameError(wanted.error, got.error)
        : got.text === wanted.text || isFolded(got.error);
    if (!isSame) {
      differences.push(
        JSON.stringify({
          template: wanted.template,
          python: wanted.text ?? wanted.error,
          ours: got.text ?? got.error,
        }),
      );
    }
  }
  for (const difference of differences.slice(0, Number(options.show))) console.log(difference);
  console.log(`${numCases} templates, ${differences.length} differences`);
  return differences.length === 0 && numCases > 0 ? 0 : 1;
}

process.exitCode = await main();
