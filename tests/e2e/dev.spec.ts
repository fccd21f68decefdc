import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { join } from 'node:path';
import { chromium } from '@playwright/test';
import { appEnvironment, expect, root, test, untilGone } from './fixture.ts';

const answers = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => {
      resolve(false);
    });
  });

test('npm run dev opens the window on the renderer’s sources, and Ctrl-C ends all of it', async ({
  home,
}) => {
  const flags = ['--home', home, '--remote-debugging-port=0'];
  // A group of its own, so that it gets the signal as a terminal's foreground gets it.
  const program = spawn(process.execPath, [join(root, 'scripts/dev.mjs'), ...flags], {
    env: appEnvironment,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let text = '';
  const endpoint = new Promise<string>((resolve, reject) => {
    const take = (chunk: unknown) => {
      text += String(chunk);
      const found = /DevTools listening on (ws:\S+)/.exec(text)?.[1];
      if (found !== undefined) resolve(found);
    };
    program.stdout.on('data', take);
    program.stderr.on('data', take);
    program.once('exit', () => {
      reject(new Error(text));
    });
  });
  const exited = new Promise((resolve) => program.once('exit', resolve));
  try {
    const browser = await chromium.connectOverCDP(await endpoint);
    const [page] = browser.contexts()[0]!.pages();
    await expect(page!.getByRole('contentinfo', { name: 'Status' })).toContainText('Ready');
    // The sources themselves, by the development server, on the app's own origin.
    const sources = await page!.evaluate(() => [...document.scripts].map(({ src }) => src).join(' '));
    expect(sources).toMatch(/tessera:\/\/app\/@vite\/client .*tessera:\/\/app\/main\.ts/);
    expect(await answers(5173)).toBe(true);
    await browser.close();
  } finally {
    process.kill(-program.pid!, 'SIGINT');
  }
  await exited;
  await untilGone(home);
  await expect.poll(() => answers(5173)).toBe(false);
});
