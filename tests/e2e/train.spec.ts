import { chmodSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { recipeSchema } from '../../main/contract/recipe.ts';
import { engineBinary } from '../../main/core/engine/binary.ts';
import { recipeGroups } from '../../renderer/views/train/recipeFields.ts';
import { appEnvironment, coreOf, expect, sample, show, test, untilReady } from './fixture.ts';

test('train: every field of the recipe, a preflight with words and ways out, stops that disable the start, a run', async ({
  home,
  open,
}) => {
  test.setTimeout(240_000);
  // While `leaks` is there the engine's proof meets a lost boundary, as `verify --leak` makes one.
  const leaks = join(home, 'leaks');
  const wrapper = join(home, 'engine.sh');
  writeFileSync(
    wrapper,
    `#!/bin/sh\nif [ "$1" = verify ] && [ -e '${leaks}' ]; then shift; exec '${engineBinary()}' verify --leak "$@"; fi\nexec '${engineBinary()}' "$@"\n`,
  );
  chmodSync(wrapper, 0o755);
  appEnvironment.TESSERA_ENGINE = wrapper;
  const { page } = await open().finally(() => {
    delete appEnvironment.TESSERA_ENGINE;
  });
  await untilReady(page);
  const core = await coreOf(home);
  const { dataset } = await core.call('datasets:import', { paths: [sample], name: 'workshop chats' });
  await show(page, `/train?dataset=${dataset.id}`);
  const start = page.getByRole('button', { name: /^Start/ });
  const footer = page.locator('footer.go');
  const item = (name: string) => page.getByRole('region', { name: 'Preflight' }).getByRole('group', { name });

  // The form has what the recipe has.
  const folds = page.locator('button.fold');
  await expect(folds).toHaveCount(recipeGroups.filter(({ folded }) => folded !== undefined).length);
  for (const fold of await folds.all()) await fold.click();
  const defaults = recipeSchema.parse({ model: 'bundled', dataset: 'bundled' });
  const fields = recipeGroups.flatMap((group) => [...group.fields, ...(group.folded?.fields ?? [])]);
  for (const { path } of fields) await expect(page.locator(`[id="field-${path}"]`)).toHaveCount(1);
  await expect(page.locator('[id="field-optimizer.lr"]')).toHaveValue(defaults.optimizer.lr.toExponential());
  const device = page.locator('[id="field-device"]');
  await expect(device).toHaveValue('auto');
  await expect(device.locator('option[value="cpu"]')).toHaveCount(1);

  // All clear: both proofs say what was proven, with its picture and its table.
  await expect(start).toBeEnabled({ timeout: 60_000 });
  await expect(item('Isolation: clear')).toContainText('moves no bit of the others');
  await expect(item('Isolation: clear').getByRole('img', { name: /The pack that was run/ })).toBeVisible();
  await expect(item('Numerics: clear')).toContainText('agree with fp64');
  await item('Numerics: clear').locator('summary').click();
  await expect(item('Numerics: clear').locator('tbody tr').first()).toContainText('%');

  // A field that is wrong is named beside the button, at once.
  const budget = page.locator('[id="field-packing.budget"]');
  await budget.fill('-5');
  await budget.press('Tab');
  await expect(start).toBeDisabled();
  await expect(footer).toContainText('packing.budget must be at least 2');
  await expect(page.locator('.pf-title')).toContainText('of the values before');

  // A stop: nothing is left to learn, and the way out.
  await budget.fill('2');
  await budget.press('Tab');
  await expect(item('Data: stops the run')).toContainText('Raise the budget', { timeout: 60_000 });
  await expect(start).toBeDisabled();
  await expect(footer).toContainText('data: ');

  // A warning lets it start.
  await page.locator('[id="field-schedule.warmupSteps"]').fill('5000');
  await page.locator('[id="field-schedule.warmupSteps"]').press('Tab');
  await budget.fill('1024');
  await budget.press('Tab');
  await expect(item('Learning rate: look at this')).toContainText('Lower schedule.warmupSteps', {
    timeout: 60_000,
  });
  await expect(start).toBeEnabled();
  await page.locator('[id="field-schedule.warmupSteps"]').fill('0');
  await page.locator('[id="field-schedule.warmupSteps"]').press('Tab');

  // A lost boundary: the pack's leaking example is drawn as one, and nothing starts.
  writeFileSync(leaks, '');
  await budget.fill('768');
  await budget.press('Tab');
  await expect(item('Isolation: stops the run')).toContainText('see each other', { timeout: 60_000 });
  await expect(item('Isolation: stops the run')).toContainText('moved: a leak');
  await expect(start).toBeDisabled();
  await expect(footer).toContainText('isolation: ');
  rmSync(leaks);
  expect(existsSync(leaks)).toBe(false);

  // What was promised is what is taken.
  await page.locator('[id="field-packing.budget"]').fill('2048');
  await page.locator('[id="field-packing.budget"]').press('Tab');
  await expect(start).toBeEnabled({ timeout: 60_000 });
  const promised = Number(/(\d+) steps/.exec((await start.textContent())!)![1]);
  await start.click();
  await expect.poll(() => page.evaluate(() => location.hash)).toMatch(/^#\/runs\/\S+/);
  const { runs } = await core.call('runs:list', {});
  const { run } = await core.call('runs:show', { id: runs[0]!.id });
  expect(run.plannedSteps).toBe(promised);
  expect(run.preflight?.isolation?.ok).toBe(true);
  expect(run.preflight?.numerics?.ok).toBe(true);
  await core.call('runs:command', { id: run.id, command: 'stop' });
  core.close();
});
