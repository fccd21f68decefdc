import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { checkRecipe } from '../../../main/core/runs/recipe.ts';
import { openRunData } from '../../../main/core/runs/runData.ts';
import { call, chatMl, makeModel, openDatasets, writeFiles } from '../datasets/fixtures.ts';

it('a run that was planned takes those tokens, whatever became of its files, and new ones where they are gone', async () => {
  const { datasets } = await openDatasets();
  const file = join(writeFiles({ 'rows.jsonl': '{"text":"one"}\n' }), 'rows.jsonl');
  const recipe = checkRecipe({ model: makeModel({ template: chatMl }), dataset: file }, 'recipe');
  const first = await openRunData(datasets, recipe, call());
  first.release();
  writeFileSync(file, '{"text":"two"}\n');

  const planned = await openRunData(datasets, recipe, call(), first.train.key);
  planned.release();
  expect(planned.train).toEqual(first.train);

  rmSync(first.train.folder, { recursive: true });
  const anew = await openRunData(datasets, recipe, call(), first.train.key);
  anew.release();
  expect(anew.train.key).not.toBe(first.train.key);
});
