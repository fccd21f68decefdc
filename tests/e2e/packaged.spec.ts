import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { chromium } from '@playwright/test';
import { appEnvironment, expect, root, sample, test, untilGone } from './fixture.ts';

const folder = join(root, 'dist/linux-unpacked');
const hasPackage = existsSync(join(folder, 'tessera'));
// The packaged programs find everything in their own folder.
const env = Object.fromEntries(Object.entries(appEnvironment).filter(([name]) => name !== 'TESSERA_ENGINE'));

test.skip(!hasPackage, 'there is no dist/linux-unpacked: npm run package makes one');

// Its fuses forbid the inspect arguments that Playwright starts Electron with: it is reached over the DevTools port.
test('the packaged app opens, with its own core and engine', async ({ home }) => {
  const program = spawn(
    join(folder, 'tessera'),
    ['--home', home, '--remote-debugging-port=0', ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])],
    { env, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const endpoint = await new Promise<string>((resolve, reject) => {
    let text = '';
    program.stderr.on('data', (chunk) => {
      text += String(chunk);
      const found = /DevTools listening on (ws:\S+)/.exec(text)?.[1];
      if (found !== undefined) resolve(found);
    });
    program.once('exit', () => {
      reject(new Error(text));
    });
  });
  const browser = await chromium.connectOverCDP(endpoint);
  const [page] = browser.contexts()[0]!.pages();
  await expect(page!.getByRole('contentinfo', { name: 'Status' })).toContainText('Ready');
  const exited = new Promise((resolve) => program.once('exit', resolve));
  await browser.close();
  program.kill();
  await exited;
  await untilGone(home);
});

test('the packaged command line imports the sample chats and finds the engine', async ({ home }) => {
  const run = promisify(execFile);
  const tessera = join(folder, 'resources/bin/tessera');
  const imported = await run(tessera, ['data', 'import', sample, '--json', '--home', home], { env });
  expect((JSON.parse(imported.stdout) as { dataset: { rows: number } }).dataset.rows).toBeGreaterThan(600);
  const doctor = await run(tessera, ['doctor', '--json', '--home', home], { env });
  const { engine } = JSON.parse(doctor.stdout) as { engine: { path: string; backends: string[] } };
  expect(engine.path).toBe(join(folder, 'resources/engine/tessera-engine'));
  expect(engine.backends).toContain('cpu');
  await untilGone(home);
});

test('the fuses are set: Electron is no Node and loads its archive alone', async ({ home }) => {
  const run = promisify(execFile);
  const asNode = await run(join(folder, 'tessera'), ['-p', '40 + 2', '--home', home], {
    env: { ...env, ELECTRON_RUN_AS_NODE: '1', DISPLAY: '' },
    timeout: 20_000,
  }).then(
    ({ stdout }) => stdout,
    (error: unknown) => (error as { stdout: string }).stdout,
  );
  expect(asNode).not.toContain('42');
});

test('with no display it says so, names its command line, and ends', async ({ home }) => {
  const { DISPLAY: _display, WAYLAND_DISPLAY: _wayland, ...plain } = env;
  const failed = await promisify(execFile)(join(folder, 'tessera'), ['--home', home], {
    env: plain,
    timeout: 20_000,
  }).catch((error: unknown) => error as { code: number; stderr: string });
  expect(failed).toMatchObject({ code: 1 });
  expect(failed.stderr).toContain('neither DISPLAY nor WAYLAND_DISPLAY is set');
  expect(failed.stderr).toContain(join(folder, 'resources/bin/tessera'));
});
