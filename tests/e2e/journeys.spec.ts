import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { coreOf, drawnLine, dropFiles, expect, test, untilReady } from './fixture.ts';

test('first run: one button, a finished run, a curve that falls', async ({ home, open }) => {
  test.setTimeout(400_000);
  const { page } = await open();
  await page.getByRole('button', { name: 'Train the sample' }).click();
  const head = page.locator('header.top');
  await expect(head.getByRole('heading', { name: 'first run' })).toBeVisible({ timeout: 60_000 });
  const loss = page.locator('section.pn', { hasText: 'nats per supervised token' }).locator('.cv');
  await expect
    .poll(async () => Number(await loss.getAttribute('data-points')), { timeout: 120_000 })
    .toBeGreaterThan(2);
  await expect(head).toContainText('finished', { timeout: 330_000 });

  const core = await coreOf(home);
  const { runs } = await core.call('runs:list', {});
  expect(runs).toHaveLength(1);
  const { run } = await core.call('runs:show', { id: runs[0]!.id });
  core.close();
  expect(run.steps).toBe(run.plannedSteps);
  expect(run.lastLoss!).toBeLessThan(run.firstLoss!);
  expect(run.evalLossAfter!).toBeLessThan(run.evalLossBefore!);
  await expect(loss).toHaveAttribute('data-points', String(run.steps));
  await expect
    .poll(async () => (await drawnLine(page, 'nats per supervised token', 'c1')).columns)
    .toBeGreaterThan(400);
  expect((await drawnLine(page, 'nats per supervised token', 'c1')).span).toBeGreaterThan(40);
  await page.getByRole('link', { name: /^Runs/ }).first().click();
  await expect(page.getByRole('row', { name: /first run/ })).toContainText('finished');
});

test('a file dropped on the window becomes a dataset whose rows and faults are shown; Machine shows what doctor knows', async ({
  home,
  open,
}) => {
  const { page } = await open();
  await untilReady(page);
  const file = join(home, 'orchard chats.jsonl');
  const chat = (i: number) =>
    JSON.stringify({
      messages: [
        { role: 'user', content: `How do I prune pear tree number ${String(i)}?` },
        { role: 'assistant', content: `Cut back tree ${String(i)} in late winter.` },
      ],
    });
  const lines = Array.from({ length: 40 }, (_, i) => chat(i));
  lines[11] = '{"messages": [{"role": "user", "content": "cut sh';
  writeFileSync(file, `${lines.join('\n')}\n`);
  await dropFiles(page, [file]);

  await expect(page.getByRole('heading', { name: 'orchard chats' })).toBeVisible({ timeout: 60_000 });
  await expect(page.getByText('How do I prune pear tree number 0?').first()).toBeVisible();
  await page.getByRole('link', { name: /Problems/ }).click();
  await expect(page.locator('main')).toContainText('12');
  const core = await coreOf(home);
  const { datasets } = await core.call('datasets:list', {});
  expect(datasets.find(({ name }) => name === 'orchard chats')?.rows).toBe(39);

  // Machine shows what doctor knows.
  await page.getByRole('link', { name: 'Machine' }).click();
  const report = await core.call('system:doctor', {});
  const view = page.locator('main');
  await expect(view).toContainText(report.cpu.name);
  await expect(view).toContainText(report.engine.version!);
  for (const { message } of report.problems)
    await expect(view).toContainText(new RegExp(message.replaceAll(/[.*+?^${}()|[\]\\]/g, '.'), 'i'));

  const tested = view.locator('[data-device="cpu"]');
  await expect(tested).toContainText('not tested yet');
  await tested.getByRole('button', { name: 'Test cpu' }).click();
  await expect(tested).toContainText(/[1-9]\d* operations right/, { timeout: 60_000 });
  await expect(tested).toContainText(/[1-9].* GFLOP\/s/);
  core.close();
});
