import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { coreOf, dropFiles, expect, show, test, untilReady } from './fixture.ts';

const folder = mkdtempSync(join(tmpdir(), 'tessera-drop-'));

const chat = (question: string, answer: string) =>
  JSON.stringify({
    messages: [
      { role: 'user', content: question },
      { role: 'assistant', content: answer },
    ],
  });

type Watched = typeof globalThis & { wasPreviewed?: boolean };

test('a dropped file shows its first rows at once, then all of them, its problems by line', async ({
  open,
}) => {
  const path = join(folder, 'ein Name mit "Zeichen" 🚲.jsonl');
  const rows = Array.from({ length: 12_000 }, (_, i) =>
    chat(
      `Question ${String(i + 1)}? ${'more words '.repeat(20)}`,
      `Answer ${String(i + 1)}. ${'and so on '.repeat(40)}`,
    ),
  );
  rows.splice(2, 1, '{"messages":', '', '{"messages":[]}');
  writeFileSync(path, `${rows.join('\n')}\n`);
  const { page } = await open();
  await untilReady(page);
  await show(page, '/datasets');
  // The preview goes when the last row is in, which may be between two looks: the page itself watches for it.
  await page.evaluate(() => {
    const words = ['The first ', '2 cannot be used', 'Question 1?', 'no JSON'];
    new MutationObserver(() => {
      const region = document.querySelector('[aria-label="First rows"]')?.closest('[aria-label="Dataset"]');
      const text = region?.textContent.replaceAll(/\s+/g, ' ') ?? '';
      if (words.every((word) => text.includes(word))) (globalThis as Watched).wasPreviewed = true;
    }).observe(document.body, { childList: true, subtree: true, characterData: true });
  });
  await dropFiles(page, [path]);

  await expect.poll(() => page.evaluate(() => (globalThis as Watched).wasPreviewed)).toBe(true);

  const grid = page.getByRole('grid', { name: 'Rows', exact: true });
  await expect(grid).toHaveAttribute('aria-rowcount', '11999', { timeout: 120_000 });
  await expect(grid.getByRole('row').nth(2)).toContainText('Question 4?');
  await page.getByRole('link', { name: /Problems/ }).click();
  await expect(page.getByTitle("'messages' is an empty list", { exact: true })).toBeVisible();
  await page.getByRole('link', { name: /As the model sees it/ }).click();
  await expect(page.locator('main, section').filter({ hasText: '<|im_start|>' }).first()).toBeVisible();
});

test('several files and a folder are one dataset; what cannot be read is named', async ({ open }) => {
  const sub = join(folder, 'sub');
  mkdirSync(sub, { recursive: true });
  writeFileSync(join(sub, 'a.csv'), 'prompt,completion\n"a\nb",c\n');
  writeFileSync(join(folder, 'b.txt'), 'a text');
  writeFileSync(join(folder, 'c.zip'), 'PK\u0003\u0004nothing');
  const { page } = await open();
  await untilReady(page);
  await show(page, '/datasets');
  await dropFiles(page, [sub, join(folder, 'b.txt')]);
  const grid = page.getByRole('grid', { name: 'Rows', exact: true });
  await expect(grid).toHaveAttribute('aria-rowcount', '2', { timeout: 60_000 });
  await dropFiles(page, [join(folder, 'c.zip')]);
  await expect(page.getByRole('alert').filter({ hasText: 'zip archive' })).toBeVisible({ timeout: 60_000 });

  // Of a file whose columns have names of their own no row can be used, until they are told.
  writeFileSync(join(folder, 'own.csv'), 'q,a\nWhy is it so?,Because it is.\n');
  await dropFiles(page, [join(folder, 'own.csv')]);
  await expect(page.getByText('Nothing was imported')).toBeVisible({ timeout: 60_000 });
  await expect(page.getByRole('grid', { name: 'First rows' }).getByRole('row')).toContainText('skipped');
  await page.getByRole('radio', { name: 'Columns' }).click();
  await page.getByLabel('What q is').selectOption('prompt');
  await page.getByLabel('What a is').selectOption('completion');
  await page.getByRole('button', { name: 'Import with these columns' }).click();
  await expect(grid.getByRole('row').first()).toContainText('Why is it so?', { timeout: 60_000 });
  await expect(page.getByText('Nothing was imported')).toHaveCount(0);
});

test.setTimeout(300_000);
test('200,000 rows scroll with only those in sight drawn; any of them is a jump or a search away', async ({
  open,
}) => {
  const path = join(folder, 'many.jsonl');
  const rows = Array.from({ length: 200_000 }, (_, i) => `{"text":"row ${String(i + 1)} of a long list"}`);
  writeFileSync(path, `${rows.join('\n')}\n`);
  const { page } = await open();
  await untilReady(page);
  await show(page, '/datasets');
  await dropFiles(page, [path]);
  const grid = page.getByRole('grid', { name: 'Rows', exact: true });
  await expect(grid).toHaveAttribute('aria-rowcount', '200000', { timeout: 240_000 });
  await expect(grid.getByRole('row').first()).toContainText('row 1 of a long list');

  // What a frame costs is measured by scripts/bench/scroll.ts; here, that it does not grow with the rows.
  const mostDrawn = await grid.evaluate(async (scroller) => {
    let most = 0;
    for (let frame = 0; frame < 120; frame++) {
      await new Promise(requestAnimationFrame);
      scroller.scrollTop += 120;
      most = Math.max(most, scroller.querySelectorAll('[role="row"]').length);
    }
    return most;
  });
  expect(mostDrawn).toBeGreaterThan(10);
  expect(mostDrawn).toBeLessThan(100);

  await page.getByLabel('Go to row').fill('150,000');
  await page.keyboard.press('Enter');
  await expect(grid.getByRole('row', { name: /row 150000 of a long list/ })).toBeVisible();
  await page.keyboard.press('ArrowDown');
  await expect(grid.getByRole('row', { selected: true })).toContainText('row 150001');
  await page.keyboard.press('/');
  await page.keyboard.type('ROW 199999 OF');
  await expect(page.getByRole('status').filter({ hasText: '1 row' })).toBeVisible({ timeout: 30_000 });
});

test('an import that was cut off is offered again; what another program imported opens by its address', async ({
  home,
  open,
}) => {
  // A core died in the middle of this import.
  const path = join(folder, 'cut-off.jsonl');
  writeFileSync(path, `${chat('Is it there?', 'It is.')}\n`);
  mkdirSync(join(home, 'imports'), { recursive: true });
  const note = { startedAtMs: 1, args: { paths: [path] } };
  writeFileSync(join(home, 'imports', `${'ab'.repeat(8)}.import.json`), JSON.stringify(note));
  const { page } = await open();
  await untilReady(page);
  await show(page, '/datasets');
  await page.getByRole('button', { name: 'Import again' }).click();
  const grid = page.getByRole('grid', { name: 'Rows', exact: true });
  await expect(grid.getByRole('row').first()).toContainText('Is it there?', { timeout: 60_000 });
  await expect(page.getByRole('button', { name: 'Import again' })).toHaveCount(0);
  const core = await coreOf(home);
  const { dataset } = await core.call('datasets:import', { paths: ['bundled'], name: 'from a terminal' });
  core.close();
  await show(page, `/datasets/${dataset.id}/tokens`);
  await expect(page.getByRole('heading', { name: 'from a terminal' })).toBeVisible();
  await expect(page.getByRole('link', { name: 'As the model sees it' })).toHaveAttribute(
    'aria-current',
    'page',
  );
});

test('a bad file that is dropped again has one card', async ({ home, open }) => {
  const { page } = await open();
  await untilReady(page);
  const bad = join(home, 'bad.jsonl');
  writeFileSync(bad, '{"foo": 1}\n{"foo": 2}\n');
  const cards = page.locator('.ds-item.failed');
  for (const key of ['first', 'second']) {
    await dropFiles(page, [bad]);
    await expect(page.locator('.ds-item.imp:not(.failed)'), key).toHaveCount(0);
    await expect(cards, key).toHaveCount(1);
    await expect(cards).toContainText('all 2 rows were skipped');
  }
});
