import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { fork } from 'node:child_process';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import {
  commandOf,
  coreOf,
  expect,
  processesOf,
  root,
  show,
  startRun,
  test,
  untilReady,
  untilStatus,
  untilStep,
} from './fixture.ts';

const theCore = (home: string) => processesOf(home).find((pid) => commandOf(pid).includes('core/main.ts'))!;
const theEngine = (home: string) =>
  processesOf(home).find(
    (pid) => commandOf(pid).includes('tessera-engine') && commandOf(pid).includes('train'),
  )!;

test('the core is killed in the middle of a run, started again, and the run is accounted for', async ({
  home,
  open,
}) => {
  const { page } = await open();
  await untilReady(page);
  const core = await coreOf(home);
  const run = await startRun(core, { steps: 4000 });
  await untilStep(core, run.id, 2);

  process.kill(theCore(home), 'SIGKILL');
  const overlay = page.getByRole('alertdialog', { name: 'The core is not running' });
  await expect(overlay).toBeVisible();
  await expect(overlay).toContainText('ended unexpectedly');
  await overlay.getByRole('button', { name: 'Start the core again' }).click();
  await expect(overlay).toBeHidden();

  const next = await coreOf(home);
  await untilStatus(next, run.id, 'stopped');
  const { run: left } = await next.call('runs:show', { id: run.id });
  expect(left.reason).toContain('the core died');
  expect(left.checkpointStep).toBeGreaterThanOrEqual(2);
  await show(page, '/runs');
  await expect(page.getByRole('row', { name: /night shift/ })).toContainText('stopped');
  next.close();
});

test('the engine is killed in the middle of a run: the run fails and says why', async ({ home, open }) => {
  const { page } = await open();
  await untilReady(page);
  const core = await coreOf(home);
  const run = await startRun(core, { steps: 4000 });
  await untilStep(core, run.id, 2);
  await show(page, `/runs/${run.id}`);
  process.kill(theEngine(home), 'SIGKILL');
  await untilStatus(core, run.id, 'failed');
  await expect(page.locator('header.top')).toContainText('failed');
  await expect(page.locator('header.top')).toContainText('SIGKILL');
  await expect(page.getByRole('alertdialog')).toBeHidden();
  core.close();
});

test('a page that crashes comes back, and its run goes on', async ({ home, open }) => {
  const { app, page } = await open();
  await untilReady(page);
  const core = await coreOf(home);
  const run = await startRun(core, { steps: 4000 });
  await untilStep(core, run.id, 1);
  // A page that is gone answers no script, ever: the next one is waited for before it is asked.
  await app.evaluate(
    ({ BrowserWindow }) =>
      new Promise<void>((resolve) => {
        const contents = BrowserWindow.getAllWindows()[0]!.webContents;
        contents.once('render-process-gone', () => {
          contents.once('did-finish-load', () => {
            resolve();
          });
        });
        contents.forcefullyCrashRenderer();
      }),
  );
  const rail = () =>
    app.evaluate(({ BrowserWindow }) =>
      BrowserWindow.getAllWindows()[0]!.webContents.executeJavaScript(
        'document.querySelector("footer.status")?.textContent',
      ),
    );
  await expect.poll(rail).toContain('night shift');
  const before = (await core.call('runs:show', { id: run.id })).run.steps;
  await untilStep(core, run.id, before + 1);
  core.close();
});

test('a home that cannot be written is named, with the way out', async ({ open }) => {
  const { page } = await open({ home: '/proc/tessera' });
  const overlay = page.getByRole('alertdialog');
  await expect(overlay).toContainText('/proc/tessera cannot be written');
  await expect(overlay).toContainText('--home');
});

test('a history written by a newer Tessera is left alone', async ({ home, open }) => {
  const file = join(home, 'tessera.sqlite');
  const db = new Database(file);
  db.pragma('user_version = 9999');
  db.close();
  const before = readFileSync(file);
  const { page } = await open();
  await expect(page.getByRole('alertdialog')).toContainText('newer Tessera (version 9999');
  expect(readFileSync(file).equals(before)).toBe(true);
});

test('a core of another version is refused by name', async ({ home, open }) => {
  const other = join(home, 'other');
  mkdirSync(other);
  for (const folder of ['main', 'db']) cpSync(join(root, folder), join(other, folder), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(other, 'node_modules'));
  writeFileSync(join(other, 'package.json'), '{"name":"tessera","type":"module","version":"99.0.0"}');
  const core = fork(join(other, 'main/core/main.ts'), ['--home', home, '--grace', '30000'], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  await new Promise((resolve) => core.once('message', resolve));
  const { page } = await open();
  await expect(page.getByRole('alertdialog')).toContainText('A core of version 99.0.0');
  core.kill();
  await new Promise((resolve) => core.once('exit', resolve));
  await page.getByRole('button', { name: 'Start the core again' }).click();
  await untilReady(page);
});
