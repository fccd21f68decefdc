import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ElectronApplication, Page } from '@playwright/test';
import {
  coreOf,
  drawnLine,
  expect,
  show,
  startRun,
  test,
  untilGone,
  untilReady,
  untilStatus,
  untilStep,
} from './fixture.ts';
import { rateOfStep, ratePlan } from '../../renderer/views/run/plannedRate.ts';

test('a run is followed live, stopped, and found again after a restart', async ({ home, open }) => {
  const first = await open();
  await untilReady(first.page);
  const core = await coreOf(home);
  const run = await startRun(core, { steps: 4000 });

  const strip = first.page.getByRole('contentinfo', { name: 'Status' });
  await expect(strip).toContainText('night shift');
  await strip.getByRole('link', { name: /night shift/ }).click();
  await expect(first.page.getByRole('heading', { name: 'night shift' })).toBeVisible();
  await untilStep(core, run.id, 3);
  const loss = first.page.locator('section.pn', { hasText: 'nats per supervised token' }).locator('.cv');
  const points = async () => Number(await loss.getAttribute('data-points'));
  await expect.poll(points).toBeGreaterThanOrEqual(3);
  const before = await points();
  await expect.poll(points).toBeGreaterThan(before);
  await expect
    .poll(async () => (await drawnLine(first.page, 'nats per supervised token', 'c1')).columns)
    .toBeGreaterThan(1);

  await first.page.getByRole('button', { name: 'Stop and save' }).click();
  await untilStatus(core, run.id, 'stopped');
  await expect(first.page.getByRole('button', { name: 'Resume' })).toBeVisible();
  const { run: stopped } = await core.call('runs:show', { id: run.id });
  expect(stopped.checkpointStep).toBe(stopped.steps);
  core.close();
  await first.app.close();
  await untilGone(home);

  const second = await open();
  await expect(second.page.getByRole('heading', { name: 'night shift' })).toBeVisible();
  await show(second.page, '/runs');
  const row = second.page.getByRole('row', { name: /night shift/ });
  await expect(row).toContainText('stopped');
  await expect(row).toContainText(String(stopped.steps));
});

test('a finished run draws its whole curve, which is saved in every form', async ({ home, open }) => {
  const { app, page } = await open();
  await untilReady(page);
  const core = await coreOf(home);
  const schedule = { kind: 'cosine', warmupSteps: 5, minLr: 1e-5 } as const;
  const run = await startRun(core, { name: 'short', steps: 24, schedule });
  await untilStatus(core, run.id, 'completed');
  await show(page, `/runs/${run.id}`);
  await expect(page.locator('header.top')).toContainText('finished');
  await expect(
    page.locator('section.pn', { hasText: 'nats per supervised token' }).locator('.cv'),
  ).toHaveAttribute('data-points', '24');
  // The line crosses most of the panel and is no flat one: the loss falls.
  const drawn = () => drawnLine(page, 'nats per supervised token', 'c1');
  await expect.poll(async () => (await drawn()).columns).toBeGreaterThan(400);
  expect((await drawn()).span).toBeGreaterThan(40);
  const { run: detail } = await core.call('runs:show', { id: run.id });
  expect(detail.lastLoss!).toBeLessThan(detail.firstLoss!);
  // The line that is drawn ahead of a run is the one that the engine then takes.
  const taken = await core.call('runs:series', { ids: [run.id], metric: 'learningRate', maxPoints: 100 });
  const { steps, mean } = taken.series[0]!;
  expect(steps).toHaveLength(24);
  const plan = ratePlan(detail.recipe)!;
  for (const [i, step] of Array.from(steps).entries())
    expect(mean[i]).toBeCloseTo(rateOfStep(plan, step, 24), 10);

  const { series } = await core.call('runs:series', { ids: [run.id], metric: 'loss' });
  core.close();
  const saved = (item: string, form: string, end: RegExp) =>
    saveChart({ app, page }, item, join(home, `loss.${form}`), end);
  const csv = (await saved('CSV', 'csv', /(.*\r\n){25}$/)).toString().trim().split('\r\n');
  expect(csv).toHaveLength(25);
  expect(csv.at(-1)).toContain(String(series[0]!.mean.at(-1)));
  expect(JSON.parse((await saved('JSON', 'json', /\]\s*$/)).toString())).toHaveLength(24);
  expect((await saved('SVG picture', 'svg', /<\/svg>\s*$/)).toString()).toMatch(
    /^<svg .*<path .*<\/svg>\s*$/s,
  );
  const png = await saved('PNG picture', 'png', /IEND.{4}$/s);
  expect(png.subarray(1, 4).toString()).toBe('PNG');
  expect(png.readUInt32BE(16)).toBe(2400);

  await show(page, `/runs/${run.id}/events`);
  await expect(page.getByRole('row', { name: /Checkpoint/ })).toContainText('Saved as checkpoint-00000024');
  await expect(page.getByRole('row', { name: /Ended/ })).toContainText('All its steps are taken');
});

/** What the loss's menu writes to a file, once it ends as it has to. */
async function saveChart(
  { app, page }: { app: ElectronApplication; page: Page },
  item: string,
  path: string,
  end: RegExp,
): Promise<Buffer> {
  await app.evaluate(({ dialog }, filePath) => {
    dialog.showSaveDialog = () => Promise.resolve({ canceled: false, filePath });
  }, path);
  await page.getByRole('button', { name: 'Save this chart: loss', exact: true }).click();
  await page.getByRole('menuitem', { name: item, exact: true }).click();
  const text = () => (existsSync(path) ? readFileSync(path).toString('latin1') : '');
  await expect.poll(text).toMatch(end);
  // Where it lies is said, with the way there.
  const notice = page.getByRole('status').filter({ hasText: path });
  await expect(notice).toContainText('Chart saved');
  await expect(notice.getByRole('button', { name: 'Show in folder' })).toBeVisible();
  return readFileSync(path);
}
