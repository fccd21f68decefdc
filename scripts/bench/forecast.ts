/**
 * Forecasts against runs, on the bundled model: `forecast.ts [--rounds 3] [--examples 200] [--budget 2048]`. Each round
 * has a home of its own, so that its first forecast rests on a few timed steps alone and the later ones on runs too.
 * Prints one line a run, as Markdown, and how many took what was forecast within the error stated.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { followRun } from '../../main/cli/followRun.ts';
import { recipeSchema } from '../../main/contract/recipe.ts';
import { attachCore } from '../../main/core/attach.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    examples: { type: 'string', default: '200' },
    budget: { type: 'string', default: '2048' },
  },
});
const strategies = ['padded', 'in-order', 'best-fit'] as const;
const watcher = {
  progress: { update: () => undefined, wait: () => undefined, clear: () => undefined, end: () => undefined },
  note: () => undefined,
  interrupted: () => new AbortController().signal,
};

console.log('| round | strategy | steps | forecast | error stated | took | off by | inside |');
console.log('|---|---|---|---|---|---|---|---|');
let inside = 0;
let runs = 0;
for (let round = 1; round <= Number(values.rounds); round++) {
  const home = mkdtempSync(join(tmpdir(), 'tessera-forecast-'));
  const core = await attachCore(home);
  try {
    // Each strategy is once the first, with nothing but timed steps to go by.
    const order = strategies.map((_, i) => strategies[(i + round - 1) % strategies.length] ?? 'padded');
    for (const strategy of order) {
      const recipe = recipeSchema.parse({
        ...{ name: strategy, model: 'bundled', dataset: 'bundled', device: 'cpu' },
        packing: { strategy, budget: Number(values.budget) },
      });
      const created = await core.call('runs:create', { recipe, maxExamples: Number(values.examples) });
      await followRun(core, created.run.id, watcher);
      const { run } = await core.call('runs:show', { id: created.run.id });
      if (run.forecast === undefined)
        throw new Error(`${strategy}: no forecast (${run.reason ?? run.status})`);
      const { seconds, errorSeconds, tookSeconds } = run.forecast;
      const isInside = Math.abs(tookSeconds - seconds) <= errorSeconds;
      runs += 1;
      inside += Number(isInside);
      const percent = (value: number) => `${(100 * value).toFixed(0)} %`;
      const cells = [
        ...[round, strategy, run.steps, `${seconds.toFixed(1)} s`, `± ${percent(errorSeconds / seconds)}`],
        ...[`${tookSeconds.toFixed(1)} s`, percent(tookSeconds / seconds - 1), isInside ? 'yes' : 'no'],
      ];
      console.log(`| ${cells.join(' | ')} |`);
    }
  } finally {
    const { pid } = await core.call('system:info', {});
    process.kill(pid, 'SIGTERM');
    await core.closed;
    rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}
console.log(`\n${String(inside)} of ${String(runs)} runs took what was forecast, within the error stated.`);
