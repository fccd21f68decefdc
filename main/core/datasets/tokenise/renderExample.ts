import type { TokenOptions } from '../options.ts';
import { TesseraError } from '../../../contract/errors.ts';
import { chooseTemplate, type ModelFolder } from '../modelFolder.ts';
import { RowError } from '../schema/messages.ts';
import type { Example } from '../schema/normalise.ts';
import type { Supervised } from '../template/supervision.ts';
import { compileTemplate, type Template } from '../template/template.ts';
import { fromJs, type Value } from '../template/values.ts';

/** Text to tokenise: each piece by itself, then joined. Spans are code points of their piece, end exclusive. */
export interface RenderedExample {
  kind: Example['kind'];
  pieces: { text: string; supervised: readonly (readonly [number, number])[] | 'all' | 'none' }[];
}

type Chat = Extract<Example, { kind: 'chat' }>;

/** Turns examples into text, chats by the model's own template. */
export class ExampleRenderer {
  private readonly model: ModelFolder;
  private readonly options: TokenOptions;
  private readonly compiled = new Map<string, Template>();
  private readonly variables: Record<string, Value>;

  constructor(model: ModelFolder, options: TokenOptions) {
    this.model = model;
    this.options = options;
    const given = { ...model.specialTokens, ...options.templateArguments };
    this.variables = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, fromJs(value)]));
  }

  /** @throws {RowError} where the template raises, with its own message */
  render(example: Example): RenderedExample {
    const { turns } = this.options.supervise;
    if (example.kind === 'text') return { kind: 'text', pieces: [{ text: example.text, supervised: 'all' }] };
    if (example.kind === 'completion') {
      const prompt = { text: example.prompt, supervised: turns === 'all' ? 'all' : 'none' } as const;
      return { kind: 'completion', pieces: [prompt, { text: example.completion, supervised: 'all' }] };
    }
    return this.renderChat(example);
  }

  /** A chat's text and where each stretch of it came from. @throws {RowError} as `render` */
  trace(example: Chat): { text: string; runs: Supervised['origins'] } {
    const { text, origins } = this.supervise(example);
    return { text, runs: origins };
  }

  private renderChat(example: Chat): RenderedExample {
    const rendered = this.supervise(example);
    const isPartial = example.numPromptMessages > 0 && this.options.supervise.turns !== 'all';
    const supervised = isPartial ? fromMessage(rendered, example.numPromptMessages) : rendered.supervised;
    return { kind: 'chat', pieces: [{ text: rendered.text, supervised }] };
  }

  private supervise({ messages, tools }: Chat): Supervised {
    const own = { messages, tools: tools ?? null, documents: null, add_generation_prompt: false };
    const context = { ...own, ...this.variables };
    const template = this.template(tools !== undefined);
    try {
      return template.renderSupervised(context, this.options.supervise);
    } catch (error) {
      throw new RowError(`the chat template refuses it: ${(error as Error).message}`);
    }
  }

  private template(hasTools: boolean): Template {
    const source = chooseTemplate(this.model, this.options.templateName, hasTools);
    const known = this.compiled.get(source);
    if (known !== undefined) return known;
    try {
      const template = compileTemplate(source);
      this.compiled.set(source, template);
      return template;
    } catch (error) {
      const problem = `the chat template of ${this.model.dir} cannot be read: ${(error as Error).message}`;
      throw new TesseraError('badTemplate', problem, 'Copy the template of the model again.');
    }
  }
}

/** A prompt given as messages may hold earlier answers: they are context, only the completion is learned. */
function fromMessage({ supervised, origins }: Supervised, first: number): Supervised['supervised'] {
  const start = origins.find(({ message }) => message !== undefined && message >= first)?.start ?? Infinity;
  return supervised.filter(([from]) => from >= start);
}
