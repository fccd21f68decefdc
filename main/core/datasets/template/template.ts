/**
 * Chat templates rendered as transformers renders them: Jinja2's immutable sandbox with trim_blocks,
 * lstrip_blocks, loop controls, raise_exception, strftime_now, a plain tojson, and the generation tag.
 */
import { TemplateError } from './errors.ts';
import { globalScope } from './globals.ts';
import { Trace, withOtherSpeech } from './origins.ts';
import { parseTemplate } from './parser.ts';
import { Runtime, Scope } from './runtime.ts';
import { compileBody } from './statementCompiler.ts';
import type { Execute } from './statementCompiler.ts';
import { superviseRender } from './supervision.ts';
import type { Supervised, SupervisionOptions } from './supervision.ts';
import { textOf } from './taggedString.ts';
import type { Str } from './taggedString.ts';
import { Dict } from './values.ts';
import type { Value } from './values.ts';

/** Variables of a render. What is absent is undefined to the template; null is None. */
export type Context = Readonly<Record<string, Value>>;

/** Parses a template. Throws TemplateError with the line of what is wrong. */
export function compileTemplate(source: string): Template {
  return new Template(compileBody(parseTemplate(source)));
}

export class Template {
  readonly #body: Execute;
  #generationPrompt: string | null | undefined;

  constructor(body: Execute) {
    this.#body = body;
  }

  /** The text. Throws TemplateError as Python would raise, with the template's line. */
  render(context: Context, now = new Date()): string {
    return textOf(this.#run(context, now, undefined));
  }

  /**
   * The text and which characters of it are the assistant's, in code points. The text equals that of `render`.
   * Throws TemplateError; `UntraceableError` where the origin of the assistant's text is lost.
   */
  renderSupervised(context: Context, options: SupervisionOptions, now = new Date()): Supervised {
    const text = this.render(context, now);
    const trace = new Trace();
    const messages = trace.tagMessages(context['messages'] ?? null);
    const traced = this.#run({ ...context, messages }, now, trace);
    if (textOf(traced) !== text) {
      throw new TemplateError(
        'UntraceableError',
        'following the origins changed the text, so no mask can be trusted',
      );
    }
    return superviseRender(traced, trace, options, {
      eosToken: context['eos_token'],
      promptText: () => this.#promptText(),
      saysNothing: () => this.#saysNothing(context, text, now),
    });
  }

  /** Whether the text would be the same if the assistant had said something else: then there is nothing to follow. */
  #saysNothing(context: Context, text: string, now: Date): boolean {
    const { messages = null } = context;
    try {
      return this.render({ ...context, messages: withOtherSpeech(messages) }, now) === text;
    } catch (error) {
      if (error instanceof TemplateError) return false;
      throw error;
    }
  }

  #run(context: Context, now: Date, trace: Trace | undefined): Str {
    const scope = new Scope(globalScope(now));
    for (const [name, value] of Object.entries(context)) scope.set(name, value);
    const runtime = new Runtime(trace);
    try {
      this.#body(new Scope(scope), runtime);
    } catch (error) {
      if (error instanceof RangeError)
        throw new TemplateError('RecursionError', 'maximum recursion depth exceeded');
      throw error;
    }
    return runtime.output;
  }

  /** What the template prints up to where the model begins to speak; null if it has no such prompt. */
  #promptText(): string | null {
    if (this.#generationPrompt === undefined) this.#generationPrompt = this.#probe();
    return this.#generationPrompt;
  }

  #probe(): string | null {
    const message = Dict.of([
      ['role', 'user'],
      ['content', ''],
    ]);
    const context = { messages: [message], tools: null, documents: null, bos_token: '', eos_token: '' };
    try {
      return this.render({ ...context, add_generation_prompt: true });
    } catch {
      return null;
    }
  }
}
