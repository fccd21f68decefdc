import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { TesseraError } from '../../../main/contract/errors.ts';
import { checkRecipe, hashRecipe, loadPreset, loadRecipe } from '../../../main/core/runs/recipe.ts';

function recipeFile(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'tessera-recipe-')), 'recipe.yaml');
  writeFileSync(path, text);
  return path;
}

function refusal(text: string, settings: string[] = []): TesseraError {
  try {
    loadRecipe(recipeFile(text), settings);
  } catch (error) {
    if (error instanceof TesseraError) return error;
    throw error;
  }
  throw new Error('not refused');
}

it('says of a file that cannot be read what is wrong with it, and the way out', () => {
  const path = recipeFile('model: m');
  expect(() => loadRecipe(`${path}.none`)).toThrow(
    expect.objectContaining({
      message: `there is no file or folder ${path}.none`,
      hint: 'Check the path.',
    }) as Error,
  );
  expect(() => loadRecipe(dirname(path))).toThrow(
    expect.objectContaining({ message: `${dirname(path)} is a folder`, hint: 'Give a file.' }) as Error,
  );
});

it('says what a field must be', () => {
  const words = (text: string) => refusal(`model: m\ndataset: d\n${text}`).message.replace(/^.*yaml: /, '');
  expect(words('steps: 0')).toBe("'steps' must be above 0");
  expect(words('steps: 1.5')).toBe("'steps' must be a whole number");
  expect(words('packing: {budget: 1}')).toBe("'packing.budget' must be at least 2");
  expect(words('evalShare: 1')).toBe("'evalShare' must be below 1");
  expect(words('optimizer: {lr: fast}')).toBe("'optimizer.lr' must be a number");
  expect(words('optimizer: {betas: [0.9]}')).toBe("'optimizer.betas' needs 2 entries");
  expect(words('packing: best-fit')).toBe("'packing' must be keys with values");
  expect(words('precision: fp16')).toBe("'precision' must be one of auto, fp32, bf16");
  expect(words('tessera: 2')).toBe("'tessera' must be 1");
  expect(words('device: gpu')).toBe("'device' must be auto, cpu, cuda:0 or cuda:0,1");
  expect(words('...\n---\nx: 1')).toMatch(/more than one document/);
});

describe('loadPreset', () => {
  it('is the published experiment, for a model that is given', () => {
    expect(loadPreset('ultrachat', ['model=/models/qwen'])).toMatchObject({
      model: '/models/qwen',
      dataset: 'hub:HuggingFaceH4/ultrachat_200k#train_sft',
      packing: { budget: 8192 },
      optimizer: { lr: 1e-5, betas: [0.9, 0.95], weightDecay: 0 },
      recompute: 'full',
    });
    expect(() => loadPreset('ultrachat')).toThrow('needs a model');
    expect(() => loadPreset('other')).toThrow("no preset 'other'");
  });
});

describe('loadRecipe', () => {
  it('writes every default back', () => {
    const recipe = loadRecipe(recipeFile('model: /m\ndataset: chats\n'));
    expect(recipe).toMatchObject({
      tessera: 1,
      packing: { strategy: 'best-fit', budget: 8192, seed: 0 },
      optimizer: { mode: 'master32', betas: [0.9, 0.95], clip: 1 },
      supervise: { turns: 'assistant', reasoning: true },
      checkpoint: { keep: 2, best: false },
      epochs: 1,
      gradAccumulation: 1,
    });
  });

  it('finds paths beside the recipe', () => {
    const path = recipeFile('model: ./model\ndataset: chats.jsonl\n');
    writeFileSync(join(path, '..', 'chats.jsonl'), '');
    expect(loadRecipe(path).dataset).toBe(join(path, '..', 'chats.jsonl'));
  });

  it('applies settings as YAML values', () => {
    const recipe = loadRecipe(recipeFile('model: /m\ndataset: d\n'), [
      'optimizer.lr=1e-4',
      'steps=7',
      'optimizer.betas=[0.9, 0.99]',
    ]);
    expect(recipe.optimizer.lr).toBe(1e-4);
    expect(recipe.optimizer.betas).toEqual([0.9, 0.99]);
    expect(recipe.steps).toBe(7);
    expect(recipe.epochs).toBeUndefined();
    const swapped = loadRecipe(recipeFile('model: /m\ndataset: d\nepochs: 3\n'), ['steps=7']);
    expect(swapped).toMatchObject({ steps: 7 });
    expect(swapped.epochs).toBeUndefined();
  });

  it('refuses an unknown key by name and suggests the one that was meant', () => {
    const top = refusal('model: /m\ndataset: d\nlearningRate: 1\n');
    expect(top.message).toContain("there is no key 'learningRate'");
    const nested = refusal('model: /m\ndataset: d\npacking: {bugdet: 10}\n');
    expect(nested.message).toContain("there is no key 'packing.bugdet'");
    expect(nested.hint).toContain('budget');
  });

  it.each([
    ['dataset: d\n', "'model' is missing"],
    ['model: /m\ndataset: d\npacking: {budget: 0}\n', "'packing.budget'"],
    ['model: /m\ndataset: d\nsteps: 3\nepochs: 2\n', "'steps'"],
    ['model: /m\ndataset: d\nevalShare: 1.5\n', "'evalShare'"],
    ['model: /m\ndataset: d\ndevice: gpu\n', "'device'"],
    ['model: [\n', ':2'],
    ['just words\n', 'holds no keys'],
  ])('refuses %j and says where', (text, message) => {
    expect(refusal(text).message).toContain(message);
  });

  it('refuses rates that fp32 cannot compute with', () => {
    for (const key of ['optimizer.lr', 'optimizer.eps', 'optimizer.weightDecay', 'schedule.minLr'])
      expect(refusal('model: /m\ndataset: d\n', [`${key}=1e308`]).message).toContain(`'${key}'`);
  });

  it('refuses a schedule that would end above its peak', () => {
    const rates = (lr: string, minLr: string) => [`optimizer.lr=${lr}`, `schedule.minLr=${minLr}`];
    expect(refusal('model: /m\ndataset: d\n', rates('1e-4', '2e-4')).message).toMatch(
      /'schedule.minLr' is above 'optimizer.lr'/,
    );
    const { schedule } = loadRecipe(recipeFile('model: /m\ndataset: d\n'), rates('1e-4', '1e-4'));
    expect(schedule.minLr).toBe(1e-4);
  });

  it('refuses a file that is not there and a setting without a value', () => {
    expect(() => loadRecipe('/nowhere/recipe.yaml')).toThrow('/nowhere/recipe.yaml');
    expect(refusal('model: /m\ndataset: d\n', ['optimizer.lr']).message).toContain('key=value');
  });
});

describe('hashRecipe', () => {
  it('does not depend on how the same settings are written', () => {
    const a = checkRecipe({ model: '/m', dataset: 'd', packing: { budget: 8192, seed: 0 } });
    const b = checkRecipe({ dataset: 'd', model: '/m' });
    expect(hashRecipe(a)).toBe(hashRecipe(b));
    expect(hashRecipe({ ...a, seed: 1 })).not.toBe(hashRecipe(a));
  });
});
