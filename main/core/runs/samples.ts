import { writeFileSync } from 'node:fs';
import { Tokenizer } from 'tokenizers';
import type { Recipe } from '../../contract/recipe.ts';
import { readModelFolder } from '../datasets/modelFolder.ts';
import type { SampleReader } from './activeRun.ts';
import { renderPrompt, stopTokens } from './generate.ts';
import { runFiles } from './runFolder.ts';

/**
 * Writes the recipe's prompts for the engine as token ids, rendered as a user's turn of the model's own template.
 * Returns what reads the answers; undefined where the recipe asks for none.
 */
export async function prepareSamples(recipe: Recipe, folder: string): Promise<SampleReader | undefined> {
  const { samples, sampleTokens } = recipe.evaluate;
  if (samples.length === 0) return undefined;
  const model = readModelFolder(recipe.model);
  const tokenizer = Tokenizer.fromFile(model.tokenizerFile);
  const stop = stopTokens(model, (token) => tokenizer.tokenToId(token) ?? undefined);
  const prompts: number[][] = [];
  for (const prompt of samples) {
    const { text, addSpecialTokens } = renderPrompt(model, prompt, recipe.template);
    prompts.push([...(await tokenizer.encode(text, null, { addSpecialTokens })).getIds()]);
  }
  writeFileSync(runFiles(folder).samples, JSON.stringify({ prompts, tokens: sampleTokens, stop }));
  return answerReader(samples, tokenizer);
}

/** Reads answers that came when nobody listened. @throws what keeps the model's tokenizer from being read */
export function sampleReader({ model, evaluate }: Recipe): SampleReader {
  return answerReader(evaluate.samples, Tokenizer.fromFile(readModelFolder(model).tokenizerFile));
}

const answerReader =
  (prompts: string[], tokenizer: Tokenizer): SampleReader =>
  async (index, ids) => ({ prompt: prompts[index] ?? '', text: await tokenizer.decode(ids, true) });
