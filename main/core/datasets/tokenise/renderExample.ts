import type { TokenOptions } from '../options.ts';
import { chooseTemplate, type ModelFolder } from '../modelFolder.ts';
import { RowError } from '../schema/messages.ts';
import type { Example } from '../schema/normalise.ts';
import { compileTemplate, type Template } from '../template/template.ts';
import { fromJs, type Value } from '../template/values.ts';

/** Text to tokenise: each piece by itself, then joined. Spans are code points of their piece, end exclusive. */
export interface RenderedExample {
  kind: Example['kind'];
  pieces: { text: string; supervised: readonly (readonly [number, number])[] | 'all' | 'none' }[];
}

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

  private renderChat(example: Extract<Example, { kind: 'chat' }>): RenderedExample {
    const { messages, tools } = example;
    const own = { messages, tools: tools ?? null, documents: null, add_generation_prompt: false };
    const context = { ...own, ...this.variables };
    const template = this.template(tools !== undefined);
    try {
      const { text, supervised } = template.renderSupervised(context, this.options.supervise);
      return { kind: 'chat', pieces: [{ text, supervised }] };
    } catch (error) {
      throw new RowError(`the chat template refuses it: ${(error as Error).message}`);
    }
  }

  private template(hasTools: boolean): Template {
    const source = chooseTemplate(this.model, this.options.templateName, hasTools);
    let template = this.compiled.get(source);
    if (template === undefined) this.compiled.set(source, (template = compileTemplate(source)));
    return template;
  }
}
