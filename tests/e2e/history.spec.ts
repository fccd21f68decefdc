import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import {
  coreOf,
  expect,
  show,
  startRun,
  test,
  untilGone,
  untilReady,
  untilStatus,
  untilStep,
} from './fixture.ts';

test('a live curve over every axis, with a note that is still there after a restart', async ({
  home,
  open,
}) => {
  test.setTimeout(240_000);
  const first = await open();
  const { page } = first;
  await untilReady(page);
  const core = await coreOf(home);
  const run = await startRun(core, { steps: 4000, evalShare: 0.05, evaluate: { everySteps: 6 } });
  await untilStep(core, run.id, 8);
  await show(page, `/runs/${run.id}`);
  const loss = page.locator('section.pn', { hasText: 'nats per supervised token' }).locator('.cv');
  const end = async () => Number(await loss.getAttribute('data-end'));
  await expect.poll(async () => Number(await loss.getAttribute('data-points'))).toBeGreaterThanOrEqual(6);
  expect(await end()).toBe(4000);
  const axis = page.getByRole('radiogroup', { name: 'Horizontal axis' });
  // Every axis is waited for by a range of its own: time's end moves by itself while the run goes.
  const choose = async (name: string, atLeast: number, atMost: number) => {
    await axis.getByRole('radio', { name }).click();
    await expect.poll(end).toBeGreaterThanOrEqual(atLeast);
    await expect.poll(end).toBeLessThanOrEqual(atMost);
  };
  // 4,000 steps of bins of 256 tokens, nearly full.
  await choose('Real tokens', 4000 * 128, 4000 * 260);
  // From a millisecond to a day and a half.
  await choose('Time', 1, 128e6);
  // Far more operations than tokens.
  await choose('FLOPs', 4000 * 128 * 1e6, Infinity);
  await expect(page).toHaveURL(/x=flops/);
  await page.getByRole('radiogroup', { name: 'Loss axis' }).getByRole('radio', { name: 'Log' }).click();

  const lane = page.getByRole('region', { name: 'Events' });
  await page.getByRole('button', { name: 'Note', exact: true }).click();
  await page.getByRole('textbox', { name: 'Note' }).fill('warm-up halved');
  await page.getByRole('textbox', { name: 'Note' }).press('Enter');
  await expect(lane.getByText('warm-up halved')).toBeVisible();
  // By the keyboard: a mark moves with every step that the run's end is foreseen by, and a click waits until it stands.
  await lane.getByRole('button', { name: /warm-up halved/ }).press('Enter');
  await page.getByRole('textbox', { name: 'Note' }).fill('warm-up doubled');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(lane.getByText('warm-up doubled')).toBeVisible();

  // The window goes; the run does not, and what it did meanwhile is there when the window comes back.
  const before = (await core.call('runs:show', { id: run.id })).run;
  await first.app.close();
  await untilStep(core, run.id, before.steps + 20);
  const second = await open();
  await expect(second.page.getByRole('heading', { name: 'night shift' })).toBeVisible();
  await expect(second.page).toHaveURL(/x=flops/);
  await expect(second.page).toHaveURL(/log=1/);
  const again = second.page.locator('section.pn', { hasText: 'nats per supervised token' }).locator('.cv');
  await expect
    .poll(async () => Number(await again.getAttribute('data-points')))
    .toBeGreaterThanOrEqual(before.steps + 20);
  await expect(second.page.getByRole('region', { name: 'Events' })).toContainText('warm-up doubled');
  const after = (await core.call('runs:show', { id: run.id })).run;
  expect(after.evaluations.length).toBeGreaterThan(before.evaluations.length);
  const note = second.page.getByRole('region', { name: 'Events' }).getByRole('button', { name: /doubled/ });
  await note.press('Enter');
  await second.page.getByRole('button', { name: 'Remove', exact: true }).click();
  await expect(note).toBeHidden();
  expect((await core.call('runs:show', { id: run.id })).run.timeNotes).toEqual([]);

  // Its other buttons, each by what the run did for it.
  const button = (name: string) => second.page.getByRole('button', { name, exact: true });
  const shown = async () => (await core.call('runs:show', { id: run.id })).run;
  const kinds = async () => (await shown()).events.map(({ kind }) => kind);
  const profiles = (await kinds()).filter((kind) => kind === 'profile').length;
  await button('Profile next step').click();
  await expect
    .poll(async () => (await kinds()).filter((kind) => kind === 'profile').length)
    .toBeGreaterThan(profiles);
  expect((await shown()).checkpointStep).toBeUndefined();
  await button('Checkpoint now').click();
  await expect.poll(async () => (await shown()).checkpointStep).toBeGreaterThan(before.steps);
  await button('Pause').click();
  await untilStatus(core, run.id, 'paused');
  await button('Go on').click();
  await untilStatus(core, run.id, 'running');
  await button('Stop and save').click();
  await untilStatus(core, run.id, 'stopped');

  // What a person says of it, and its recipe for the next one.
  const field = (name: string) => second.page.getByRole('textbox', { name });
  await field('Name of this run').fill('day shift');
  await field('Name of this run').press('Enter');
  await expect(second.page.getByRole('heading', { name: 'day shift' })).toBeVisible();
  await field('Add a tag').fill('baseline seed');
  await field('Add a tag').press('Enter');
  await button('Remove the tag seed').click();
  await field('About this run').fill('rate halved');
  await field('About this run').blur();
  await expect.poll(shown).toMatchObject({ name: 'day shift', tags: ['baseline'], notes: 'rate halved' });
  await button('New run from this').click();
  await expect(field('Name of the run')).toHaveValue('day shift 2');
  await button('Undo').click();
  await expect(field('Name of the run')).toHaveValue('my first run');
  core.close();
});

test('runs are searched, the search is kept, a run is deleted and brought back, all over a restart', async ({
  home,
  open,
}) => {
  const first = await open();
  const { page } = first;
  await untilReady(page);
  const core = await coreOf(home);
  const slow = await startRun(core, { name: 'slow rate', steps: 2, optimizer: { lr: 1e-5 } });
  const fast = await startRun(core, { name: 'fast rate', steps: 2, optimizer: { lr: 2e-3 } });
  await untilStatus(core, fast.id, 'completed');
  await show(page, '/runs');
  const rows = page.getByRole('grid', { name: 'Runs' }).getByRole('row');
  await expect(rows).toHaveCount(2);
  const search = page.getByRole('searchbox', { name: 'Search runs' });

  await search.fill('lr<1e-4 OR');
  await expect(page.getByRole('alert')).toContainText('OR needs a term on either side');
  await search.fill('lr<1e-4 status:finished');
  await expect(rows).toHaveCount(1);
  await expect(rows).toContainText('slow rate');
  await page.getByRole('button', { name: 'Save search' }).click();
  await page.getByRole('textbox', { name: 'Name of the search' }).fill('gentle');
  await page.getByRole('textbox', { name: 'Name of the search' }).press('Enter');
  const saved = page.getByRole('navigation', { name: 'Saved searches' });
  await expect(saved.getByRole('link', { name: 'gentle' })).toBeVisible();

  await rows.getByRole('checkbox').click();
  await page.getByRole('toolbar').getByRole('button', { name: 'Delete', exact: true }).click();
  await expect(page.getByText('1 run deleted')).toBeVisible();
  await expect(page.getByText('No run matches')).toBeVisible();
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(rows).toHaveCount(1);
  await rows.getByRole('checkbox').click();
  await page.getByRole('toolbar').getByRole('button', { name: 'Delete', exact: true }).click();
  await expect(page.getByText('No run matches')).toBeVisible();
  await expect(core.call('runs:list', {})).resolves.toMatchObject({ runs: [{ id: fast.id }] });
  core.close();
  await first.app.close();
  await untilGone(home);

  // Another program writes: the window shows a copy and says so, until the file is free again.
  const other = new Database(join(home, 'tessera.sqlite'));
  other.exec('BEGIN IMMEDIATE');
  const second = await open();
  await untilReady(second.page);
  await show(second.page, '/runs');
  const again = second.page.getByRole('grid', { name: 'Runs' }).getByRole('row');
  await expect(again).toHaveCount(1);
  const banner = second.page.getByRole('alert').filter({ hasText: 'Another program holds the history' });
  await expect(banner.getByRole('button', { name: 'Save a copy…' })).toBeVisible();
  // Freed, it opens by itself.
  other.close();
  await expect(banner).toBeHidden();
  await untilReady(second.page);

  await show(second.page, '/settings');
  await second.page.getByRole('radiogroup', { name: 'Theme' }).getByRole('radio', { name: 'Light' }).click();
  await expect(second.page.locator('html')).toHaveAttribute('data-theme', 'light');
  await second.page.getByRole('spinbutton', { name: /Disk budget/ }).fill('37');
  await second.page.getByRole('textbox', { name: /Learning rate/ }).fill('3e-5');
  await second.page.getByRole('textbox', { name: /Held out/ }).fill('0.25');
  await second.page.getByRole('textbox', { name: /Held out/ }).press('Enter');
  await expect
    .poll(() => JSON.parse(readFileSync(join(home, 'settings.json'), 'utf8')) as unknown)
    .toMatchObject({ diskBudgetGib: 37, defaults: { lr: 3e-5, evalShare: 0.25 } });
  await show(second.page, '/runs');
  await expect(again).toHaveCount(1);
  await second.page.getByRole('link', { name: 'Deleted' }).click();
  await expect(again).toContainText('slow rate');
  await again.getByRole('checkbox').click();
  await second.page.getByRole('toolbar').getByRole('button', { name: 'Bring back' }).click();
  await expect(second.page.getByText('Nothing was deleted')).toBeVisible();
  await second.page.getByRole('link', { name: 'gentle' }).click();
  await expect(again).toContainText('slow rate');
  expect(slow.id).not.toBe(fast.id);
});
