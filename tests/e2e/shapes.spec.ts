import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { expect, show, test, untilReady } from './fixture.ts';

const routes = [
  '/first',
  '/datasets',
  '/packing',
  '/train',
  '/runs',
  '/compare',
  '/machine',
  '/machine/ladder',
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

test('every view fits the smallest window', async ({ open }) => {
  const { app, page } = await open();
  await untilReady(page);
  await app.evaluate(({ BrowserWindow }) => {
    BrowserWindow.getAllWindows()[0]!.setBounds({ x: 0, y: 0, width: 1100, height: 700 });
  });
  await expect.poll(() => page.evaluate(() => innerWidth)).toBe(1100);
  for (const route of routes) {
    await show(page, route);
    await page.waitForTimeout(700);
    expect(await misfits(page), route).toEqual([]);
  }
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
    await show(page, route);
    await page.waitForTimeout(700);
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
