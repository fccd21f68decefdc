import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Recipe } from '../../contract/recipe.ts';
import { writePlan } from '../packing/planFile.ts';
import type { PlannedRun } from './planRun.ts';
import { hashRecipe } from './recipe.ts';

/** What lies in a run's folder. */
export function runFiles(folder: string) {
  return {
    recipe: join(folder, 'recipe.json'),
    plan: join(folder, 'plan.safetensors'),
    evalPlan: join(folder, 'evalPlan.safetensors'),
    /** Prompts of the recipe as the engine takes them. */
    samples: join(folder, 'samples.json'),
    /** What the engine writes: checkpoints. */
    out: join(folder, 'out'),
  };
}

/** Writes what the engine reads: the resolved recipe with the device and number of steps, and the plans. */
export function writeRunFolder(folder: string, recipe: Recipe, device: string, plan: PlannedRun): void {
  const files = runFiles(folder);
  mkdirSync(files.out, { recursive: true });
  const resolved = { ...recipe, device, steps: plan.summary.steps, recipeHash: hashRecipe(recipe) };
  writeFileSync(files.recipe, `${JSON.stringify(resolved, null, 2)}\n`);
  writePlan(files.plan, plan.train, plan.source.key);
  if (plan.evaluation) writePlan(files.evalPlan, plan.evaluation, plan.evalSource.key);
}

/** The same run on another device: its plan stays, and so do the bins of a step. */
export function moveRunFolder(folder: string, device: string): void {
  const { recipe } = runFiles(folder);
  const resolved = JSON.parse(readFileSync(recipe, 'utf8')) as Record<string, unknown>;
  writeFileSync(recipe, `${JSON.stringify({ ...resolved, device }, null, 2)}\n`);
}
