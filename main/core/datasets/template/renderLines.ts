/** `data render` and `data mask`: chats in, one JSON object a line out, rows that fail among them. */
import type { Line } from '../readers/lines.ts';
import { JsonError, parsePythonJson } from '../pythonJson.ts';
import { supervisedTokens } from '../tokenise/supervisedTokens.ts';
import type { TokenizerFile } from '../tokenise/tokenizerFile.ts';
import { chatContext } from './chat.ts';
import { TemplateError } from './errors.ts';
import type { Supervised, SupervisionOptions } from './supervision.ts';
import type { Context, Template } from './template.ts';
import type { Value } from './values.ts';

export interface RenderOptions {
  readonly template: Template;
  /** Absent: no spans are asked for. */
  readonly supervision: SupervisionOptions | undefined;
  readonly templateArguments: Readonly<Record<string, Value>>;
}

export interface RowFailure {
  readonly error: string;
}

export interface RenderedRow {
  readonly text: string;
  /** [start, end) in code points. */
  readonly supervised?: Supervised['supervised'];
}

export interface MaskedRow {
  readonly ids: readonly number[];
  readonly supervised: readonly number[];
}

/** Renders each line's chat as it stands. Blank lines are no rows; a row that fails gives its reason. */
export async function* renderLines(
  lines: AsyncIterable<Line[]>,
  { template, supervision, templateArguments }: RenderOptions,
): AsyncGenerator<RenderedRow | RowFailure> {
  for await (const line of rows(lines)) {
    yield attempt(line, templateArguments, (context): RenderedRow => {
      if (!supervision) return { text: template.render(context) };
      const { text, supervised } = template.renderSupervised(context, supervision);
      return { text, supervised };
    });
  }
}

/**
 * Token ids of each line's chat and which of them are learned. The template prints the special tokens, so the
 * tokenizer adds none; a lone surrogate, which no tokenizer takes, is read as U+FFFD.
 */
export async function* maskLines(
  lines: AsyncIterable<Line[]>,
  { template, supervision, templateArguments }: RenderOptions & { readonly supervision: SupervisionOptions },
  { tokenizer, numBytes }: TokenizerFile,
): AsyncGenerator<MaskedRow | RowFailure> {
  for await (const line of rows(lines)) {
    const rendered = attempt(line, templateArguments, (context) =>
      template.renderSupervised(context, supervision),
    );
    if ('error' in rendered) {
      yield rendered;
      continue;
    }
    const text = rendered.text.toWellFormed();
    const encoding = await tokenizer.encode(text, null, { addSpecialTokens: false });
    const ids = encoding.getIds();
    yield {
      ids,
      supervised: [...supervisedTokens(text, rendered.supervised, ids, encoding, numBytes)],
    };
  }
}

async function* rows(lines: AsyncIterable<Line[]>): AsyncGenerator<Line> {
  for await (const batch of lines) {
    for (const line of batch) if ('problem' in line || line.text.trim() !== '') yield line;
  }
}

function attempt<T>(
  line: Line,
  templateArguments: Readonly<Record<string, Value>>,
  render: (context: Context) => T,
): T | RowFailure {
  if ('problem' in line) return { error: `line ${line.line}: ${line.problem}` };
  try {
    return render(chatContext(parsePythonJson(line.text), templateArguments));
  } catch (error) {
    if (error instanceof JsonError) return { error: `line ${line.line} is no JSON: ${error.message}` };
    if (error instanceof TemplateError) return { error: error.describe() };
    throw error;
  }
}
