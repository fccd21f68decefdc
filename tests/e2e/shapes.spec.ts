import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { coreOf, expect, sample, show, startRun, test, untilReady, untilStatus } from './fixture.ts';

const routes = [
  '/first',
  '/datasets',
  '/packing',
  '/train',
  '/runs',
  '/compare',
  '/machine',
  '/machine/ladder',
  '/settings',
];

/** Controls that stick out of the window, or whose text is cut by their own box without being shortened on purpose. */
async function misfits(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const found: string[] = [];
    const { clientWidth, clientHeight } = document.documentElement;
    if (document.documentElement.scrollWidth > clientWidth) found.push('the window scrolls sideways');
    if (document.documentElement.scrollHeight > clientHeight) found.push('the window scrolls down');
    for (const element of document.querySelectorAll<HTMLElement>(
      'nav.rail > *, footer.status, header.top, main button',
    )) {
      if (!element.checkVisibility()) continue;
      const box = element.getBoundingClientRect();
      if (box.width === 0) continue;
      const name = `${element.tagName} ${element.textContent.trim().slice(0, 30)}`;
      if (box.right > clientWidth + 1 || box.left < -1) found.push(`${name} sticks out`);
      const isShortened = getComputedStyle(element).textOverflow === 'ellipsis';
      if (element.tagName === 'BUTTON' && !isShortened && element.scrollWidth > element.clientWidth + 1)
        found.push(`${name} is cut`);
    }
    return found;
  });
}

/** Shown, and with all that it asks the core for. */
async function visit(page: Page, route: string): Promise<void> {
  await show(page, route);
  await expect(page.locator('main').getByRole('heading').first()).toBeVisible();
  await expect(page.locator('main .waiting')).toHaveCount(0);
  await page.evaluate(
    () => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))),
  );
}

/** Elements that would take time to change. */
async function moving(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll('*')].flatMap((element) => {
      const { transitionDuration, animationName } = getComputedStyle(element);
      const isStill = animationName === 'none' && !/[1-9]/.test(transitionDuration);
      return isStill
        ? []
        : [`${element.tagName} ${element.getAttribute('class') ?? ''} ${transitionDuration}`];
    }),
  );
}

/** Goes through a view with the tab key; names each stop that cannot be seen, or does not show that it has the focus. */
async function tabThrough(page: Page, stops: number): Promise<string[]> {
  await page.locator('nav.rail a').first().focus();
  const found: string[] = [];
  for (let i = 0; i < stops; i += 1) {
    await page.keyboard.press('Tab');
    const fault = await page.evaluate(() => {
      const element = document.activeElement as HTMLElement;
      if (element === document.body) return undefined;
      const { left, right, top, bottom, width, height } = element.getBoundingClientRect();
      const name = `${element.tagName} ${element.ariaLabel ?? element.textContent.trim().slice(0, 30)}`;
      if (width === 0 || height === 0 || !element.checkVisibility()) return `${name} is not shown`;
      if (right <= 0 || bottom <= 0 || left >= innerWidth || top >= innerHeight)
        return `${name} is out of sight`;
      const isMarked = (one: Element | null) => {
        const { outlineStyle, boxShadow } = getComputedStyle(one ?? document.body);
        return outlineStyle !== 'none' || boxShadow !== 'none';
      };
      // A field's frame, or the grid's row that the arrows move, shows it in the element's place.
      const row = element.querySelector('.on, .cursor, [aria-selected="true"]');
      const isSeen = isMarked(element) || isMarked(element.parentElement) || (row !== null && isMarked(row));
      const isFramed = element.matches('input, textarea') && element.closest(':focus-within') !== null;
      return isSeen || isFramed ? undefined : `${name} does not show the focus`;
    });
    if (fault !== undefined && !found.includes(fault)) found.push(fault);
  }
  return found;
}

test('every view fits the smallest window, is walked by the tab key and moves nothing for who asks for no motion', async ({
  home,
  open,
}) => {
  const { app, page } = await open();
  await untilReady(page);
  await app.evaluate(({ BrowserWindow }) => {
    BrowserWindow.getAllWindows()[0]!.setContentSize(1100, 700);
  });
  await expect.poll(() => page.evaluate(() => innerWidth)).toBe(1100);
  await page.emulateMedia({ reducedMotion: 'reduce' });
  const core = await coreOf(home);
  const { dataset } = await core.call('datasets:import', { paths: [sample], name: 'shapes' });
  const run = await startRun(core, { name: 'shapes', steps: 2 });
  await untilStatus(core, run.id, 'completed');
  core.close();
  const ofDataset = ['rows', 'tokens', 'lengths', 'problems', 'columns'];
  const tabs = [
    ...ofDataset.map((tab) => `/datasets/${dataset.id}/${tab}`),
    ...['live', 'profile'].map((tab) => `/runs/${run.id}/${tab}`),
  ];
  for (const route of [...routes, ...tabs]) {
    await visit(page, route);
    expect(await misfits(page), route).toEqual([]);
    expect(await tabThrough(page, 30), route).toEqual([]);
    expect(await moving(page), route).toEqual([]);
  }

  // Drawn smaller to fit, and in a larger window of the next start no more.
  await app.evaluate(({ BrowserWindow }) => {
    const window = BrowserWindow.getAllWindows()[0]!;
    window.setMinimumSize(800, 500);
    window.setContentSize(990, 700);
  });
  await expect.poll(() => page.evaluate(() => innerWidth)).toBe(1100);
  await app.close();
  const file = join(home, 'window.json');
  const bounds = { x: 0, y: 0, width: 1400, height: 900 };
  const kept = JSON.parse(readFileSync(file, 'utf8')) as { isFitted: boolean };
  expect(kept.isFitted).toBe(true);
  writeFileSync(file, JSON.stringify({ ...kept, window: { bounds, isMaximized: false } }));
  const { page: larger } = await open();
  await expect.poll(() => larger.evaluate(() => innerWidth)).toBe(1400);
});

test('at 200 % every view can be read and reached', async ({ open }) => {
  const { app, page } = await open({ args: ['--force-device-scale-factor=2'] });
  await untilReady(page);
  const [width, display] = await app.evaluate(({ BrowserWindow, screen }) => [
    BrowserWindow.getAllWindows()[0]!.getBounds().width,
    screen.getPrimaryDisplay().workArea.width,
  ]);
  expect(width).toBeLessThanOrEqual(display);
  expect(await app.evaluate(({ screen }) => screen.getPrimaryDisplay().scaleFactor)).toBe(2);
  await expect.poll(() => page.evaluate(() => innerWidth)).toBeGreaterThanOrEqual(1099);
  for (const route of routes) {
    await visit(page, route);
    expect(await misfits(page), route).toEqual([]);
  }
});

test('a place on a display that is gone is not gone back to', async ({ home, open }) => {
  mkdirSync(home, { recursive: true });
  const bounds = { x: 9000, y: 5000, width: 1300, height: 800 };
  writeFileSync(
    join(home, 'window.json'),
    JSON.stringify({ theme: 'dark', window: { bounds, isMaximized: false } }),
  );
  const { app, page } = await open();
  await untilReady(page);
  const [window, display] = await app.evaluate(({ BrowserWindow, screen }) => [
    BrowserWindow.getAllWindows()[0]!.getBounds(),
    screen.getPrimaryDisplay().workArea,
  ]);
  expect(window.x).toBeGreaterThanOrEqual(display.x);
  expect(window.x + 120).toBeLessThanOrEqual(display.x + display.width);
  expect(window.y + 32).toBeLessThanOrEqual(display.y + display.height);
});
