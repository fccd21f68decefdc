import { counted } from '../../contract/counted.ts';
import type { Recipe } from '../../contract/recipe.ts';
import type { PreflightItem } from '../../contract/runs.ts';

/** The largest learning rate of a run of so many steps: a warm-up that is longer than the run never reaches the peak. */
function highestRate({ optimizer: { lr }, schedule: { warmupSteps } }: Recipe, steps: number): number {
  return warmupSteps > steps ? (lr * steps) / warmupSteps : lr;
}

/** What the learning rate does over the run; a warning where it would change no weight, or never does what it is for. */
export function rateItem(recipe: Recipe, steps: number): PreflightItem {
  const name = 'learning rate';
  const { lr } = recipe.optimizer;
  const { kind, warmupSteps, minLr } = recipe.schedule;
  const highest = highestRate(recipe, steps);
  // The engine computes with fp32, where a rate may be nothing although it is written as something.
  if (Math.fround(highest) === 0)
    return {
      name,
      status: 'warn',
      message: `${lr === 0 ? '0' : `${written(lr)}, which is 0 in fp32,`} at every step: no weight changes`,
      hint: `Raise optimizer.lr${lr === 0 ? '' : ` or lower schedule.warmupSteps`}; 2e-5 is the usual beginning.`,
    };
  if (warmupSteps >= steps && warmupSteps > 0)
    return {
      name,
      status: 'warn',
      message: `the warm-up of ${counted(warmupSteps, 'step')} takes the whole run: it ends at ${written(highest)} of ${written(lr)}`,
      hint: 'Lower schedule.warmupSteps, or train for more steps.',
    };
  const rises = warmupSteps === 0 ? '' : `, after ${counted(warmupSteps, 'step')} of warm-up`;
  const falls = kind === 'constant' ? 'constant' : `${kind} to ${written(minLr)}`;
  return { name, status: 'pass', message: `${written(lr)}${rises}, ${falls}` };
}

/**
 * What a recipe asks for at steps that a run never comes to: the key, and what happens instead.
 * @param hasHeldOut whether there is anything to evaluate with
 */
export function pastTheEnd(
  { profileAtStep, checkpoint, evaluate }: Recipe,
  steps: number,
  hasHeldOut: boolean,
): { key: string; instead: string }[] {
  const asked = [
    { key: 'profileAtStep', step: profileAtStep, instead: 'no step is profiled' },
    {
      key: 'checkpoint.everySteps',
      step: checkpoint.everySteps,
      instead: 'the only checkpoint is at the end',
    },
    {
      key: 'evaluate.everySteps',
      step: hasHeldOut ? evaluate.everySteps : undefined,
      instead: 'evaluated only before and after',
    },
  ];
  return asked.flatMap(({ key, step, instead }) =>
    step !== undefined && step > steps
      ? [{ key, instead: `${key} ${step.toLocaleString('en-US')} is past the end: ${instead}` }]
      : [],
  );
}

/** Keys of a recipe that want a held-out loss, and have none to go by. */
export function needHeldOut({ checkpoint, evaluate }: Recipe): string[] {
  return [
    ...(evaluate.everySteps === undefined ? [] : ['evaluate.everySteps']),
    ...(evaluate.samples.length === 0 ? [] : ['evaluate.samples']),
    ...(checkpoint.best ? ['checkpoint.best'] : []),
  ];
}

/** As recipes have it: `2e-5`, `0.001`. */
function written(rate: number): string {
  const rounded = Number(rate.toPrecision(3));
  return rounded === 0 || rounded >= 1e-3 ? String(rounded) : rounded.toExponential();
}
