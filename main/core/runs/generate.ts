import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Tokenizer } from 'tokenizers';
import { z } from 'zod';
import type { CallContext } from '../../contract/channel.ts';
import { TesseraError } from '../../contract/errors.ts';
import type { Recipe } from '../../contract/recipe.ts';
import type { CheckpointChoice } from '../../contract/runs.ts';
import { chooseTemplate, readModelFolder, type ModelFolder } from '../datasets/modelFolder.ts';
import { compileTemplate } from '../datasets/template/template.ts';
import { fromJs } from '../datasets/template/values.ts';
import { askEngine } from '../engine/askEngine.ts';
import { chooseCheckpoint } from './checkpoints.ts';
import type { Runs } from './runs.ts';

export interface GenerateRequest {
  model: string;
  prompt: string;
  /** Which weights of a run. */
  checkpoint: CheckpointChoice;
  tokens: number;
  temperature: number;
  seed: number;
}

/** Answers one user's message with a model folder, or with the newest weights of a run and its own template. */
export async function generate(
  runs: Runs,
  request: GenerateRequest,
  { signal }: CallContext,
): Promise<{ text: string }> {
  const { weights, folder, template } = locate(runs, request.model, request.checkpoint);
  const model = readModelFolder(folder);
  const tokenizer = Tokenizer.fromFile(model.tokenizerFile);
  const { text, addSpecialTokens } = renderPrompt(model, request.prompt, template);
  const encoding = await tokenizer.encode(text, null, { addSpecialTokens });
  const stop = stopTokens(model, (token) => tokenizer.tokenToId(token) ?? undefined);
  const args = [
    'generate',
    ...['--model', weights],
    ...['--tokens', String(request.tokens)],
    ...['--temperature', String(request.temperature)],
    ...['--seed', String(request.seed)],
    ...(stop.length > 0 ? ['--stop', stop.join(',')] : []),
  ];
  const answer = z.looseObject({ ids: z.array(z.int()) });
  const { ids } = await askEngine(answer, args, {
    input: JSON.stringify({ ids: encoding.getIds() }),
    signal,
  });
  const spoken = ids.filter((id) => !stop.includes(id));
  return { text: await tokenizer.decode(spoken, true) };
}

function locate(
  runs: Runs,
  name: string,
  checkpoint: CheckpointChoice,
): { weights: string; folder: string; template: Recipe['template'] } {
  if (existsSync(join(name, 'config.json')))
    return { weights: name, folder: name, template: { arguments: {} } };
  if (existsSync(name))
    throw new TesseraError('noModel', `${name} holds no config.json`, 'Give a model folder, or a run.');
  const row = runs.find(name);
  const { model, template } = JSON.parse(row.recipe) as Recipe;
  const { path: weights } = chooseCheckpoint(row, checkpoint);
  // A checkpoint has the tokenizer that it was trained with; the model's folder may be gone or be another by now.
  return { weights, folder: existsSync(join(weights, 'tokenizer.json')) ? weights : model, template };
}

/** The prompt as a user's turn in the model's chat template; a model without one continues the text. */
export function renderPrompt(
  model: ModelFolder,
  prompt: string,
  { name, arguments: given }: Recipe['template'],
) {
  if (model.templates.size === 0) return { text: prompt, addSpecialTokens: true };
  const values = {
    ...model.specialTokens,
    ...given,
    messages: [{ role: 'user', content: prompt }],
    tools: null,
    documents: null,
    add_generation_prompt: true,
  };
  const context = Object.fromEntries(Object.entries(values).map(([key, value]) => [key, fromJs(value)]));
  return {
    text: compileTemplate(chooseTemplate(model, name, false)).render(context),
    addSpecialTokens: false,
  };
}

export function stopTokens(model: ModelFolder, idOf: (token: string) => number | undefined): number[] {
  const eos = model.specialTokens.eos_token;
  const ids = new Set(eos === undefined ? [] : [idOf(eos)]);
  for (const file of ['generation_config.json', 'config.json']) {
    const path = join(model.dir, file);
    if (!existsSync(path)) continue;
    const { eos_token_id: found } = JSON.parse(readFileSync(path, 'utf8')) as {
      eos_token_id?: number | number[] | null;
    };
    for (const id of [found ?? []].flat()) ids.add(id);
  }
  return [...ids].filter((id) => id !== undefined);
}
