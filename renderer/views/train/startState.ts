import { stringify } from 'yaml';
import type { RecipeInput } from '../../../main/contract/recipe.ts';
import type { Preflight } from '../../../main/contract/runs.ts';

interface Known {
  faults: Map<string, string>;
  problem: { message: string } | undefined;
  preflight: Preflight | undefined;
  isChecking: boolean;
}

/** What keeps the run from starting, in words for beside the button; undefined where nothing does. */
export function whatIsMissing({ faults, problem, preflight, isChecking }: Known): string | undefined {
  const [fault] = faults;
  if (fault !== undefined) return `${fault[0]} ${fault[1]}`;
  if (problem !== undefined) return problem.message;
  if (preflight === undefined || isChecking) return 'Checking';
  const stop = preflight.items.find((item) => item.status === 'stop');
  return stop === undefined ? undefined : `${stop.name}: ${stop.message}`;
}

/** A shell command that does the same as the start button. */
export function commandFor(recipe: RecipeInput): string {
  return `tessera train - <<'EOF'\n${stringify(recipe)}EOF`;
}
