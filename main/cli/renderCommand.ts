import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { TesseraError } from '../contract/errors.ts';
import { describeFileError } from '../core/datasets/readers/files.ts';
import { readLines } from '../core/datasets/readers/lines.ts';
import type { Line } from '../core/datasets/readers/lines.ts';
import { TemplateError } from '../core/datasets/template/errors.ts';
import type { SupervisionOptions } from '../core/datasets/template/supervision.ts';
import { compileTemplate } from '../core/datasets/template/template.ts';
import type { Template } from '../core/datasets/template/template.ts';
import { fromJs } from '../core/datasets/template/values.ts';
import type { Value } from '../core/datasets/template/values.ts';
import { choiceOption, usage } from './command.ts';
import { superviseOptions } from './dataOptions.ts';
import { parseValues } from './pairs.ts';

const MAX_LINE_BYTES = 256 * 2 ** 20;

/** What `data render` and `data mask` have in common. */
export const renderOptions = {
  template: { type: 'string', value: 'FILE', help: 'A chat template (Jinja)' },
  ...superviseOptions,
} as const;

interface RenderValues {
  readonly template: string | undefined;
  readonly supervise: string | undefined;
  readonly 'no-reasoning': boolean | undefined;
  readonly argument: string[] | undefined;
}

/** The options that a call gives, checked. @throws {TesseraError} naming the template's file and line */
export function readRenderOptions(options: RenderValues): {
  template: Template;
  supervision: SupervisionOptions;
  templateArguments: Record<string, Value>;
} {
  const { template: file } = options;
  if (file === undefined) throw usage('--template FILE is missing');
  const turns = choiceOption('supervise', options.supervise, ['assistant', 'last', 'all']) ?? 'assistant';
  const given = Object.entries(parseValues('argument', options.argument));
  return {
    template: readTemplate(file),
    supervision: { turns, reasoning: options['no-reasoning'] !== true },
    templateArguments: Object.fromEntries(given.map(([name, value]) => [name, fromJs(value)])),
  };
}

function readTemplate(file: string): Template {
  let source: string;
  try {
    source = readFileSync(file, 'utf8');
  } catch (error) {
    throw describeFileError(error, file);
  }
  try {
    return compileTemplate(source);
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    const where = error.line === undefined ? file : `${file}, line ${String(error.line)}`;
    throw new TesseraError('badTemplate', `${where}: ${error.message}`);
  }
}

/** Standard input by lines. */
export function inputLines(): AsyncGenerator<Line[]> {
  return readLines(process.stdin, MAX_LINE_BYTES);
}

/** One JSON object a line on standard output, no faster than it is read. */
export async function printRows(rows: AsyncIterable<object>): Promise<void> {
  for await (const row of rows) {
    if (!process.stdout.write(`${JSON.stringify(row)}\n`)) await once(process.stdout, 'drain');
  }
}
