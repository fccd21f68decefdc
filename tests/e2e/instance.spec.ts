import { spawn } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  appEnvironment,
  dropFiles,
  electronProgram,
  expect,
  root,
  sample,
  test,
  untilReady,
} from './fixture.ts';

test('a second start hands its files to the first window and ends', async ({ home, open }) => {
  const { app, page } = await open();
  await untilReady(page);
  const file = join(home, 'second chats.jsonl');
  copyFileSync(sample, file);
  await app.evaluate(({ BrowserWindow }) => {
    BrowserWindow.getAllWindows()[0]?.minimize();
  });
  const second = spawn(electronProgram(), [root, '--home', home, file], {
    env: appEnvironment,
    stdio: 'ignore',
  });
  const code = await new Promise((resolve) => second.once('exit', resolve));
  expect(code).toBe(0);
  await expect.poll(() => page.evaluate(() => location.hash)).toMatch(/^#\/datasets/);
  expect(app.windows()).toHaveLength(1);
});

test('a file that the program is started with arrives in Datasets', async ({ home, open }) => {
  const file = join(home, 'opened chats.jsonl');
  copyFileSync(sample, file);
  const { page } = await open({ args: [file] });
  await expect.poll(() => page.evaluate(() => location.hash)).toMatch(/^#\/datasets/);
});

test('a file dragged from the desktop is taken with its true path', async ({ home, open }) => {
  const { page } = await open();
  await untilReady(page);
  const file = join(home, 'dragged chats.jsonl');
  copyFileSync(sample, file);
  await page.evaluate(() => {
    window.addEventListener('drop', (event) => {
      const [dropped] = event.dataTransfer?.files ?? [];
      document.title = dropped === undefined ? 'nothing' : window.tessera.pathForFile(dropped);
    });
  });
  await dropFiles(page, [file], () => expect(page.getByText('Drop to import')).toBeVisible());
  await expect(page.getByText('Drop to import')).toBeHidden();
  await expect(page).toHaveTitle(file);
  await expect.poll(() => page.evaluate(() => location.hash)).toMatch(/^#\/datasets/);
});
