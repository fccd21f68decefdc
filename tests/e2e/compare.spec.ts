import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ElectronApplication, Page } from '@playwright/test';
import type { CoreClient } from '../../main/contract/index.ts';
import { coreOf, expect, show, startRun, test, untilReady, untilStatus } from './fixture.ts';

async function twoRuns(core: CoreClient): Promise<[string, string]> {
  const packing = { budget: 512 };
  const padded = await startRun(core, { name: 'padded', packing: { ...packing, strategy: 'padded' } });
  const packed = await startRun(core, {
    name: `packed ${'with a name beyond every column '.repeat(4)}`,
    packing,
  });
  for (const { id } of [padded, packed]) await untilStatus(core, id, 'completed');
  return [padded.id, packed.id];
}

/** Share of a chart's pixels that are drawn on. */
async function inked(page: Page, selector: string): Promise<number> {
  return page
    .locator(`${selector} canvas`)
    .first()
    .evaluate((element) => {
      const canvas = element as HTMLCanvasElement;
      const { data } = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height);
      let drawn = 0;
      for (let i = 3; i < data.length; i += 4) if (data[i]! > 0) drawn += 1;
      return drawn / (data.length / 4);
    });
}

test('two runs side by side: the waterfall adds up, the profile is drawn, the report opens offline', async ({
  home,
  open,
}) => {
  test.setTimeout(300_000);
  const { app, page } = await open();
  await untilReady(page);
  const core = await coreOf(home);
  const [padded, packed] = await twoRuns(core);

  await show(page, `/compare?runs=${padded},${packed}`);
  const why = page.getByRole('region', { name: 'Why one run is faster' });
  await expect(why).toContainText('packed');
  await expect.poll(() => inked(page, '.cmp-wf .cv')).toBeGreaterThan(0.02);
  // The table beside the chart adds up to the difference that its head names.
  const plain = (text: string) => text.replaceAll(',', '').replaceAll('−', '-');
  const head = plain(await why.locator('.h .u').innerText());
  const [from, to] = [...head.matchAll(/[\d.]+/g)].map(([number]) => Number(number));
  const sums = await why.locator('tbody tr td:nth-child(2)').allInnerTexts();
  const total = sums.reduce((sum, text) => sum + Number(plain(text)), 0);
  expect(Math.abs(total - ((to ?? 0) - (from ?? 0)))).toBeLessThan(0.1 * sums.length + 0.1);
  await expect(page.locator('.cmp-table')).toContainText('packing.strategy');
  // However long its name is, a run takes no room from what is said of it.
  await app.evaluate(({ BrowserWindow }) => {
    BrowserWindow.getAllWindows()[0]!.setContentSize(1100, 700);
  });
  await expect
    .poll(() =>
      page
        .locator('header.top, .cmp-table, .cmp-controls, .cmp-wf .h')
        .evaluateAll((all) => all.map((element) => element.scrollWidth - element.clientWidth)),
    )
    .toEqual([0, 0, 0, 0]);

  await page.getByRole('radio', { name: 'Real tokens' }).click();
  await expect(page.locator('.cmp-chart')).toContainText('by real tokens');
  await page.getByLabel('Align the runs at this loss').fill('6.5');
  await page.getByLabel('Align the runs at this loss').press('Enter');
  await expect.poll(() => inked(page, '.cmp-chart .cv')).toBeGreaterThan(0.005);
  await page.getByLabel(/with evaluation/).check();
  await expect(why).toContainText('data, host');
  await page.getByRole('button', { name: 'Save this chart: why-faster' }).click();
  await expect(page.getByRole('menuitem')).toHaveText(['PNG picture', 'SVG picture', 'CSV', 'JSON']);
  await page.keyboard.press('Escape');

  // A run is taken out, and found again in the history by a part of its name.
  const takeOut = page.getByRole('button', { name: /Take packed/ });
  await takeOut.click();
  await expect(takeOut).toBeHidden();
  await page.locator('.cmp-add').click();
  await page.keyboard.type('pack');
  await expect(page.locator('.n-base-select-option')).toHaveText(/packed/);
  await page.keyboard.press('Enter');
  await expect(takeOut).toBeVisible();

  await show(page, `/runs/${padded}/profile`);
  await expect(page.getByRole('heading', { level: 2 }).first()).toContainText('of the step is work');
  await expect(page.locator('.pf-words')).toContainText('Padding is');
  await expect(page.locator('.pf-verdict tbody tr')).toHaveCount(3);
  for (const chart of ['step-timeline', 'roofline'])
    await expect.poll(() => inked(page, `[data-chart="${chart}"]`)).toBeGreaterThan(0.01);
  await expect(page.locator('.pf-table').first()).toContainText('linear_bwd_weight');
  const trace = join(home, 'step.trace.json');
  await app.evaluate(({ dialog }, filePath) => {
    dialog.showSaveDialog = () => Promise.resolve({ canceled: false, filePath });
  }, trace);
  await page.getByRole('button', { name: 'Chrome trace' }).click();
  await expect(page.getByRole('status').filter({ hasText: trace })).toContainText('Trace saved');
  const { traceEvents } = JSON.parse(readFileSync(trace, 'utf8')) as { traceEvents: { name: string }[] };
  expect(traceEvents.map(({ name }) => name)).toContain('linear_bwd_weight');

  await show(page, `/runs/${padded}/machine`);
  await expect(page.locator('[data-source="host"]')).toContainText('Processor');
  await drawsTheLadder(page, core);
  const report = async (...ids: string[]) => (await core.call('runs:report', { ids })).html;
  const both = await openOffline(app, home, await report(padded, packed));
  await expect(both.getByRole('heading', { level: 2, name: /Why packed .*is/ })).toBeVisible();
  await expect(both.getByRole('img', { name: 'Loss by step' })).toBeVisible();
  await expect(both.getByRole('heading', { level: 2, name: 'Profile of padded' })).toBeVisible();
  const box = await both.getByRole('img', { name: 'Waterfall of time per real token' }).boundingBox();
  expect(box?.height).toBeGreaterThan(150);
  const one = await openOffline(app, home, await report(packed));
  await expect(one.getByRole('heading', { level: 1, name: /packed/ })).toBeVisible();
  await expect(one.getByRole('img', { name: 'Loss by step' })).toBeVisible();
  await expect(one.getByRole('heading', { level: 2, name: 'Recipe' })).toBeVisible();
  expect(await app.evaluate(() => (globalThis as { asked?: string[] }).asked ?? [])).toEqual([]);
  core.close();
});

test('what is compared and how is there again after a reload, and for who comes back', async ({
  home,
  open,
}) => {
  const { page } = await open();
  await untilReady(page);
  const core = await coreOf(home);
  const ids: string[] = [];
  for (const name of ['one', 'two', 'three']) ids.push((await startRun(core, { name, steps: 4 })).id);
  for (const id of ids) await untilStatus(core, id, 'completed');
  await show(page, `/compare?runs=${ids.join()}`);
  const ends = page.locator('.cmp-pair select');
  const [from, to] = [ends.nth(0), ends.nth(1)];
  await from.selectOption('three');
  // The other end is another run.
  await expect(to.locator('option')).toHaveText(['one', 'two']);
  await to.selectOption('two');
  await page.getByRole('radio', { name: 'Throughput' }).click();
  await page.getByRole('radio', { name: 'Time' }).click();
  const holds = async () => {
    await expect(page.getByRole('region', { name: 'Why one run is faster' })).toContainText(
      /Why is two \w+ than three\?/,
    );
    await expect(from).toHaveValue(ids[2]!);
    await expect(page.locator('.cmp-chart')).toContainText('real tokens per second, by wall time');
  };
  await holds();
  await page.reload();
  await holds();
  await page.getByRole('link', { name: 'Machine' }).click();
  await page.getByRole('heading', { name: 'Machine' }).waitFor();
  await page.getByRole('link', { name: 'Compare' }).click();
  await holds();
  const { html } = await core.call('runs:report', { ids, pair: [2, 1] });
  expect(html).toMatch(/Why two is .* than three/);
  core.close();
});

/** What packing and kernels gain: empty at first, cancelled without a trace, and drawn as it was measured. */
async function drawsTheLadder(page: Page, core: CoreClient): Promise<void> {
  await show(page, '/machine/ladder');
  await page.getByRole('button', { name: 'Measure', exact: true }).click();
  await expect(page.getByRole('status').filter({ hasText: 'Measuring' })).toBeVisible();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await expect(page.getByRole('heading', { name: 'Not measured on this machine yet' })).toBeVisible();

  await show(page, '/machine');
  // The engine that was cancelled is on its way out.
  await expect(async () => {
    await core.call('bench:ladder', { examples: 4, budget: 256, rounds: 1 });
  }).toPass();
  await show(page, '/machine/ladder');
  const rungs = page.locator('.ld-rung');
  await expect(rungs).toHaveCount(3);
  await expect(rungs.nth(0)).toContainText('gdn_fwd_recurrent_cpu');
  await expect(rungs.nth(1)).toContainText('gdn_fwd_chunked_cpu');
  await expect(rungs.nth(2)).toContainText('no padding');
  await expect(rungs.nth(2)).toContainText(/\d\.\d\d×/);
}

/** Opens a page in a window of its own that may fetch nothing but the file itself; what it asks for is noted. */
async function openOffline(app: ElectronApplication, home: string, html: string): Promise<Page> {
  const file = join(home, 'report.html');
  writeFileSync(file, html);
  const [page] = await Promise.all([
    app.waitForEvent('window'),
    app.evaluate(async ({ BrowserWindow, session }, path) => {
      const alone = session.fromPartition('reader');
      alone.webRequest.onBeforeRequest((details, answer) => {
        const isPage = details.url.startsWith('file:') && details.url.endsWith('report.html');
        const asked = globalThis as { asked?: string[] };
        if (!isPage) asked.asked = [...(asked.asked ?? []), details.url];
        answer({ cancel: !isPage });
      });
      const window = new BrowserWindow({ width: 1000, height: 900, webPreferences: { session: alone } });
      await window.loadFile(path);
    }, file),
  ]);
  const pictures = process.env.TESSERA_REPORT_PICTURES;
  if (pictures !== undefined) {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      const path = join(pictures, `report-${String(html.length)}-${colorScheme}.png`);
      await page.screenshot({ path, fullPage: true });
    }
  }
  return page;
}
