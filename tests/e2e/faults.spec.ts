import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { _electron } from '@playwright/test';
import Database from 'better-sqlite3';
import {
  appEnvironment,
  commandOf,
  coreOf,
  electronProgram,
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
  // The view beneath is out of reach, for the keyboard too: from the last button it is on to the rail.
  const beneath = page.locator('main .beneath');
  expect(await beneath.evaluate((element) => (element as HTMLElement).inert)).toBe(true);
  for (let i = 0; i < 12; i += 1) {
    await page.keyboard.press('Tab');
    expect(await beneath.evaluate((element) => element.contains(document.activeElement))).toBe(false);
  }
  await overlay.getByRole('button', { name: 'Start the core again' }).click();
  await expect(overlay).toBeHidden();
  expect(await beneath.evaluate((element) => (element as HTMLElement).inert)).toBe(false);

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
  // Why, and the way out, in a line of their own.
  await expect(page.locator('.run-why')).toContainText(/SIGKILL[\s\S]*resume/i);
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
  const shown = async () => (await core.call('runs:show', { id: run.id })).run;
  const before = await shown();
  await untilStep(core, run.id, before.steps + 1);

  // Before the machine sleeps the run is saved, and goes on when it wakes.
  expect(before.checkpointStep).toBeUndefined();
  await app.evaluate(({ powerMonitor }) => powerMonitor.emit('suspend'));
  await expect.poll(async () => (await shown()).checkpointStep).toBeGreaterThanOrEqual(before.steps);
  await app.evaluate(({ powerMonitor }) => powerMonitor.emit('resume'));
  await untilStep(core, run.id, (await shown()).steps + 1);
  core.close();
});

test('a home that cannot be written is named, and another one is a click away', async ({ home, open }) => {
  const data = join(home, 'user-data');
  const { app, page } = await open({ home: '/proc/tessera', env: { XDG_DATA_HOME: data } });
  const overlay = page.getByRole('alertdialog');
  await expect(overlay).toContainText('/proc/tessera cannot be written');
  await expect(overlay.getByRole('button', { name: 'Start the core again' })).toBeFocused();

  const other = join(home, 'another home');
  const relaunched = app.evaluate(
    ({ app: electron, dialog }, path) =>
      new Promise<string[]>((resolve) => {
        dialog.showOpenDialog = () => Promise.resolve({ canceled: false, filePaths: [path] });
        let args: string[] = [];
        electron.relaunch = (options) => {
          args = options?.args ?? [];
        };
        // The program stays until it has told; then it ends as ever.
        const quit = electron.quit.bind(electron);
        electron.quit = () => {
          electron.quit = quit;
          resolve(args);
        };
      }),
    other,
  );
  await overlay.getByRole('button', { name: 'Choose another home…' }).click();
  const args = await relaunched;
  expect(args).toContain(`--home=${other}`);
  expect(args.join(' ')).not.toContain('/proc/tessera');
  const pointer = readFileSync(join(data, 'tessera/location.json'), 'utf8');
  expect(JSON.parse(pointer)).toEqual({ home: other });
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

for (const version of ['99.0.0', '0.0.1']) {
  test(`a core of version ${version} is refused by name`, async ({ home, open }) => {
    const other = join(home, 'other');
    mkdirSync(other);
    for (const folder of ['main', 'db']) cpSync(join(root, folder), join(other, folder), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(other, 'node_modules'));
    writeFileSync(join(other, 'package.json'), `{"name":"tessera","type":"module","version":"${version}"}`);
    const core = fork(join(other, 'main/core/main.ts'), ['--home', home, '--grace', '30000'], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    await new Promise((resolve) => core.once('message', resolve));
    const { page } = await open();
    await expect(page.getByRole('alertdialog')).toContainText(`A core of version ${version}`);
    core.kill();
    await new Promise((resolve) => core.once('exit', resolve));
    await page.getByRole('button', { name: 'Start the core again' }).click();
    await untilReady(page);
  });
}

test('a program without its core says which part is missing', async ({ home }) => {
  const part = join(home, 'part of an installation');
  mkdirSync(part);
  for (const name of ['package.json', 'out', 'assets', 'node_modules'])
    symlinkSync(join(root, name), join(part, name));
  const app = await _electron.launch({
    executablePath: electronProgram(),
    args: [part, '--home', home],
    env: appEnvironment,
  });
  const overlay = (await app.firstWindow()).getByRole('alertdialog');
  await expect(overlay).toContainText(`${join(part, 'main/core/main.ts')} is not there`);
  await expect(overlay).toContainText('npm start');
  await app.close();
});

test('a page that crashes is told of, and comes back when asked to', async ({ open }) => {
  const { app, page } = await open();
  await untilReady(page);
  const asked = await app.evaluate(
    ({ BrowserWindow, dialog }) =>
      new Promise<string>((resolve) => {
        process.env.TESSERA_NO_DIALOGS = '0';
        const contents = BrowserWindow.getAllWindows()[0]!.webContents;
        let question = '';
        dialog.showMessageBox = ((_window: unknown, options: Electron.MessageBoxOptions) => {
          question = `${options.message} ${options.detail ?? ''} ${(options.buttons ?? []).join(' | ')}`;
          return Promise.resolve({ response: 0, checkboxChecked: false });
        }) as typeof dialog.showMessageBox;
        contents.once('did-finish-load', () => {
          resolve(question);
        });
        contents.forcefullyCrashRenderer();
      }),
  );
  expect(asked).toContain('stopped working');
  expect(asked).toContain('Runs are not affected');
  expect(asked).toContain('Reload | Close window');
});

test('the graphics process is killed: the page goes on; killed again: drawn without it from then on', async ({
  home,
  open,
}) => {
  const { app, page } = await open();
  await untilReady(page);
  await app.evaluate(({ app: electron }) => {
    const state = globalThis as { relaunchedWith?: string[] };
    electron.relaunch = (options) => {
      state.relaunchedWith = options?.args ?? [];
    };
  });
  const graphics = () =>
    app.evaluate(({ app: electron }) => electron.getAppMetrics().find(({ type }) => type === 'GPU')?.pid);
  const first = await graphics();
  expect(first).toBeDefined();
  process.kill(first!, 'SIGKILL');
  await expect.poll(graphics).not.toBe(first);
  await expect.poll(graphics).toBeDefined();
  // Still drawn and still answering.
  await page.getByRole('link', { name: 'Machine' }).click();
  await expect(page.getByRole('heading', { name: 'Machine' })).toBeVisible();
  await expect.poll(async () => (await page.screenshot()).byteLength).toBeGreaterThan(10_000);

  const ended = new Promise((resolve) => app.process().once('exit', resolve));
  process.kill((await graphics())!, 'SIGKILL');
  await ended;
  const settings = JSON.parse(readFileSync(join(home, 'window.json'), 'utf8')) as Record<string, unknown>;
  expect(settings.drawsInSoftware).toBe(true);
  const again = await open();
  await untilReady(again.page);
  // Electron before 36 cannot be asked.
  const isAccelerated = await again.app.evaluate(({ app: electron }) =>
    'isHardwareAccelerationEnabled' in electron ? electron.isHardwareAccelerationEnabled() : false,
  );
  expect(isAccelerated).toBe(false);
});
