import { coreOf, expect, show, startRun, test, untilReady, untilStatus } from './fixture.ts';

test('the window is worked by keyboard alone: palette, rail, table, search', async ({ home, open }) => {
  const { page } = await open();
  await untilReady(page);
  const core = await coreOf(home);
  const older = await startRun(core, { name: 'older', steps: 2 });
  const newer = await startRun(core, { name: 'newer', steps: 2 });
  await untilStatus(core, newer.id, 'completed');
  core.close();
  const hash = () => page.evaluate(() => location.hash);

  await page.keyboard.press('Control+k');
  const palette = page.getByRole('dialog', { name: 'Command palette' });
  await expect(palette).toBeVisible();
  await page.keyboard.type('mach');
  await page.keyboard.press('Enter');
  await expect(palette).toBeHidden();
  await expect.poll(hash).toBe('#/machine');

  await page.keyboard.press('?');
  const sheet = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
  await expect(sheet.getByText('Command palette', { exact: false })).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(sheet).toBeHidden();

  // A run by its name.
  await page.keyboard.press('Control+k');
  await page.keyboard.type('older');
  await expect(palette.getByRole('option').first()).toContainText('Run');
  await page.keyboard.press('Enter');
  await expect.poll(hash).toContain(`#/runs/${older.id}`);

  // The rail: from its first entry to Runs, then through the page's own controls into the table.
  await page.getByRole('link', { name: 'Tessera: first run' }).focus();
  for (let i = 0; i < 4; i += 1) await page.keyboard.press('Tab');
  await expect(page.getByRole('link', { name: 'Runs', exact: false }).first()).toBeFocused();
  await page.keyboard.press('Enter');
  await expect.poll(hash).toBe('#/runs');
  const table = page.getByRole('grid', { name: 'Runs' });
  await expect(table).toBeVisible();
  for (let i = 0; i < 24; i += 1) {
    if (await table.evaluate((element) => element === document.activeElement)) break;
    await page.keyboard.press('Tab');
  }
  await expect(table).toBeFocused();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press(' ');
  await expect(page.getByRole('row', { name: /older/ })).toHaveAttribute('aria-selected', 'true');
  await page.keyboard.press('Enter');
  await expect.poll(hash).toBe(`#/runs/${older.id}`);
  await expect(page.getByRole('heading', { name: 'older' })).toBeVisible();

  // The search takes the keyboard with a slash, and Escape gives it back.
  await show(page, '/runs');
  await page.getByRole('searchbox', { name: 'Search runs' }).waitFor();
  await page.keyboard.press('/');
  await expect(page.getByRole('searchbox', { name: 'Search runs' })).toBeFocused();
  await page.keyboard.press('Control+k');
  await expect(palette).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('searchbox', { name: 'Search runs' })).toBeFocused();
});
