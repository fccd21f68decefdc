import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, openApp, root, temporaryHome, test, untilReady, type OpenApp } from '../e2e/fixture.ts';

// One app for all: each test gets its page loaded anew.
const home = temporaryHome();
let opened: OpenApp;
test.beforeAll(async () => {
  opened = await openApp(home.path);
});
test.beforeEach(async () => {
  await opened.page.reload();
  await opened.page.getByRole('navigation', { name: 'Views' }).waitFor();
});
test.afterAll(async () => {
  await opened.app.close();
  home.remove();
});

test('the page has no Node, no Electron, and a bridge of three functions', async () => {
  const { page, app } = opened;
  const found = await page.evaluate(() => ({
    globals: ['require', 'process', 'module', 'Buffer', 'global', '__dirname'].filter(
      (name) => name in window,
    ),
    bridge: Object.keys(window.tessera).sort(),
    isFrozen: Object.isFrozen(window.tessera),
  }));
  expect(found).toEqual({ globals: [], bridge: ['onFrame', 'pathForFile', 'send'], isFrozen: true });
  const preferences = await app.evaluate(({ BrowserWindow }) => {
    const contents = BrowserWindow.getAllWindows()[0]!.webContents as unknown as {
      getLastWebPreferences: () => Record<string, unknown>;
    };
    const { sandbox, contextIsolation, nodeIntegration, webSecurity } = contents.getLastWebPreferences();
    return { sandbox, contextIsolation, nodeIntegration, webSecurity };
  });
  expect(preferences).toEqual({
    sandbox: true,
    contextIsolation: true,
    nodeIntegration: false,
    webSecurity: true,
  });
});

test('the content policy stops inline script, eval and what comes from outside', async () => {
  const { page } = opened;
  const result = await page.evaluate(async () => {
    const violations: string[] = [];
    document.addEventListener('securitypolicyviolation', (event) => {
      violations.push(`${event.effectiveDirective} ${event.blockedURI}`);
    });
    const script = document.createElement('script');
    script.textContent = 'window.wasInline = true';
    document.body.append(script);
    const image = document.createElement('img');
    image.src = 'https://example.org/pixel.png';
    document.body.append(image);
    const fetched = await fetch('https://example.org/').then(
      () => 'fetched',
      () => 'refused',
    );
    await new Promise((resolve) => setTimeout(resolve, 300));
    return { violations, fetched, wasInline: 'wasInline' in window };
  });
  expect(result.wasInline).toBe(false);
  expect(result.fetched).toBe('refused');
  expect(result.violations).toContain('script-src-elem inline');
  expect(result.violations).toContain('img-src https://example.org/pixel.png');
  expect(result.violations).toContain('connect-src https://example.org/');
  // DevTools evaluation is exempt from the policy, so eval is tried by a listener that the page itself runs.
  const evaluated = await page.evaluate(
    () =>
      new Promise((resolve) => {
        setTimeout(() => {
          try {
            // eslint-disable-next-line @typescript-eslint/no-implied-eval, @typescript-eslint/no-unsafe-call -- must not run
            resolve(`ran: ${String(new Function('return 1')())}`);
          } catch (error) {
            resolve((error as Error).name);
          }
        }, 0);
      }),
  );
  expect(evaluated).toBe('EvalError');
});

test('the page goes nowhere and opens nothing', async () => {
  const { app, page } = opened;
  await untilReady(page);
  const before = page.url();
  await page.evaluate(() => {
    location.href = 'https://example.org/';
  });
  const isDenied = await page.evaluate(() => window.open('https://example.org/') === null);
  expect(isDenied).toBe(true);
  await page.evaluate(() => {
    const link = document.createElement('a');
    link.href = 'file:///etc/passwd';
    document.body.append(link);
    link.click();
  });
  await page.waitForTimeout(500);
  expect(page.url()).toBe(before);
  expect(app.windows()).toHaveLength(1);
});

test('the app’s own protocol serves the renderer and nothing beside it', async () => {
  const { page } = opened;
  const statuses = await page.evaluate(async () => {
    const get = async (path: string) => (await fetch(path)).status;
    return Promise.all([
      get('/index.html'),
      get('/%2e%2e/main/main.js'),
      get('/..%2f..%2fpackage.json'),
      get('/%2fetc%2fpasswd'),
      get('/none.js'),
    ]);
  });
  expect(statuses).toEqual([200, 404, 404, 404, 404]);
});

test('frames from a foreign page are refused', async () => {
  const server = createServer((_request, response) => response.end('<!doctype html><title>foreign</title>'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/`;
  const { app, log } = opened;
  const answer = await app.evaluate(
    async ({ BrowserWindow }, { preload, url: foreign }) => {
      // A window with this app's own preload, on a page that is not ours.
      const window = new BrowserWindow({
        show: false,
        webPreferences: { preload, sandbox: true, contextIsolation: true },
      });
      await window.loadURL(foreign);
      const got: unknown = await window.webContents.executeJavaScript(`new Promise((resolve) => {
        window.tessera.onFrame((frame) => resolve(frame.kind));
        window.tessera.send({ kind: 'call', id: 1, channel: 'host:info', args: {} });
        setTimeout(() => resolve('no answer'), 1500);
      })`);
      window.destroy();
      return got;
    },
    { url, preload: join(root, 'out/preload/preload.cjs') },
  );
  server.close();
  expect(answer).toBe('no answer');
  expect(log()).toContain(`frame refused: ${url} is not a page of ours`);
});

test('what is no frame of the contract is dropped, and bad arguments are refused by name', async () => {
  const { page } = opened;
  await untilReady(page);
  const answers = await page.evaluate(
    () =>
      new Promise<Record<string, unknown>[]>((resolve) => {
        const got: Record<string, unknown>[] = [];
        window.tessera.onFrame((frame) => {
          const { id, kind, error } = frame as { id: number; kind: string; error?: { code: string } };
          if (id < 900_000) return;
          got.push({ id, kind, code: error?.code });
          if (got.length === 3) resolve(got.sort((a, b) => Number(a.id) - Number(b.id)));
        });
        window.tessera.send('nonsense');
        window.tessera.send({ kind: 'call', id: -1, channel: 'host:info' });
        window.tessera.send({ kind: 'call', id: 900_000, channel: 'host:no-such', args: {} });
        window.tessera.send({
          kind: 'call',
          id: 900_001,
          channel: 'host:set-theme',
          args: { theme: 'pink' },
        });
        window.tessera.send({ kind: 'call', id: 900_002, channel: 'host:info', args: {} });
      }),
  );
  expect(answers).toEqual([
    { id: 900_000, kind: 'error', code: 'unknownChannel' },
    { id: 900_001, kind: 'error', code: 'badArguments' },
    { id: 900_002, kind: 'result', code: undefined },
  ]);
});
