import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { _electron, expect, test as base, type ElectronApplication, type Page } from '@playwright/test';
import type { CoreClient } from '../../main/contract/index.ts';
import type { RecipeInput } from '../../main/contract/recipe.ts';
import type { RunSummary } from '../../main/contract/runs.ts';
import { findCore } from '../../main/core/attach.ts';
import { bundled } from '../../main/core/bundled.ts';

export { expect };
export const root = resolve(import.meta.dirname, '../..');

export interface OpenApp {
  app: ElectronApplication;
  page: Page;
  /** What the main process wrote to stderr so far. */
  log: () => string;
}

interface Fixtures {
  /** A fresh folder, removed afterwards with every process that works in it. */
  home: string;
  open: (options?: { home?: string; args?: string[]; env?: Record<string, string> }) => Promise<OpenApp>;
}

/** Where Electron is: `npm test` says so. */
export function electronProgram(): string {
  const program = process.env.TESSERA_ELECTRON_PROGRAM;
  if (program === undefined)
    throw new Error('TESSERA_ELECTRON_PROGRAM names no Electron: run these through npm test');
  return program;
}

export const appEnvironment: Record<string, string> = {
  ...(process.env as Record<string, string>),
  TESSERA_NO_DIALOGS: '1',
  // Its sandbox helper cannot serve root.
  ...(process.getuid?.() === 0 && { ELECTRON_DISABLE_SANDBOX: '1' }),
};

/** A fresh folder, and its end with every process that works in it. */
export function temporaryHome(): { path: string; remove: () => void } {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'tessera-e2e-')));
  return {
    path,
    remove: () => {
      for (const pid of processesOf(path)) process.kill(pid, 'SIGKILL');
      rmSync(path, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** @param onStart told of the program before its window is there: whoever started it ends it */
export async function openApp(
  home: string,
  { args = [], env = {} }: { args?: string[]; env?: Record<string, string> } = {},
  onStart: (app: ElectronApplication) => void = () => undefined,
): Promise<OpenApp> {
  const app = await _electron.launch({
    executablePath: electronProgram(),
    args: [root, '--home', home, ...args],
    env: { ...appEnvironment, ...env },
    timeout: 60_000,
  });
  onStart(app);
  let log = '';
  app.process().stderr?.on('data', (chunk) => (log += String(chunk)));
  const page = await app.firstWindow();
  await page.getByRole('navigation', { name: 'Views' }).waitFor();
  return { app, page, log: () => log };
}

export const test = base.extend<Fixtures>({
  home: async ({}, use) => {
    const home = temporaryHome();
    await use(home.path);
    home.remove();
  },
  open: async ({ home }, use) => {
    const opened: ElectronApplication[] = [];
    await use(({ home: other = home, ...options } = {}) =>
      openApp(other, options, (app) => opened.push(app)),
    );
    for (const app of opened) await app.close().catch(() => undefined);
  },
});

/** Every process whose command line names the home, but for Electron's own helpers. */
export function processesOf(home: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && commandOf(pid).includes(home));
}

export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${String(pid)}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

export async function untilGone(home: string): Promise<void> {
  await expect
    .poll(() => processesOf(home).map(commandOf), { timeout: 30_000, message: 'processes left over' })
    .toEqual([]);
}

/** A second client of the core that the window runs by, as the command line is one. */
export async function coreOf(home: string): Promise<CoreClient> {
  await expect.poll(async () => closing(await findCore(home)), { message: 'a core' }).toBe(true);
  return (await findCore(home))!;
}

function closing(core: CoreClient | undefined): boolean {
  core?.close();
  return core !== undefined;
}

export const sample = bundled().samples;

/** A run on the bundled model and chats, in small bins so that a step takes a moment. */
export async function startRun(
  core: CoreClient,
  { name = 'night shift', steps = 12, ...rest }: Partial<RecipeInput> & { steps?: number } = {},
): Promise<RunSummary> {
  const { run } = await core.call('runs:create', {
    recipe: {
      name,
      model: bundled().model,
      dataset: bundled().samples,
      device: 'cpu',
      packing: { budget: 256 },
      optimizer: { lr: 1e-3 },
      ...rest,
      steps,
    },
    measure: false,
  });
  return run;
}

export async function untilStatus(core: CoreClient, id: string, status: RunSummary['status']): Promise<void> {
  await expect
    .poll(async () => (await core.call('runs:show', { id })).run.status, { timeout: 90_000 })
    .toBe(status);
}

export async function untilStep(core: CoreClient, id: string, step: number): Promise<void> {
  await expect
    .poll(async () => (await core.call('runs:show', { id })).run.steps, { timeout: 90_000 })
    .toBeGreaterThanOrEqual(step);
}

export async function show(page: Page, route: string): Promise<void> {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, route);
}

/** Drags files from outside over the window and lets them go there. */
export async function dropFiles(page: Page, files: string[], whileOver?: () => Promise<void>): Promise<void> {
  const devTools = await page.context().newCDPSession(page);
  const drag = (type: 'dragEnter' | 'dragOver' | 'drop') =>
    devTools.send('Input.dispatchDragEvent', {
      type,
      x: 700,
      y: 400,
      data: { items: [], files, dragOperationsMask: 1 },
    });
  await drag('dragEnter');
  await drag('dragOver');
  await whileOver?.();
  await drag('drop');
}

/** Waits until the window says that its core is there. */
export async function untilReady(page: Page): Promise<void> {
  await expect(page.getByRole('contentinfo', { name: 'Status' })).toContainText(/Ready|Training|Paused/);
}

/**
 * What is drawn of a chart's line: in how many columns of its canvas a pixel has the line's colour, and how far apart
 * (CSS pixels) the highest and the lowest of them lie.
 */
export async function drawnLine(page: Page, title: string, token: string) {
  return page
    .locator('section.pn', { hasText: title })
    .locator('canvas')
    .first()
    .evaluate((element, name) => {
      const canvas = element as HTMLCanvasElement;
      const color = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
      const wanted = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));
      const { data, width, height } = canvas
        .getContext('2d')!
        .getImageData(0, 0, canvas.width, canvas.height);
      const columns = new Set<number>();
      let top = height;
      let bottom = 0;
      for (let i = 0; i < data.length; i += 4) {
        if (data[i + 3]! < 200) continue;
        if (wanted.some((value, channel) => Math.abs(value - data[i + channel]!) > 24)) continue;
        const y = Math.floor(i / 4 / width);
        columns.add((i / 4) % width);
        top = Math.min(top, y);
        bottom = Math.max(bottom, y);
      }
      return { columns: columns.size, span: Math.max(0, bottom - top) };
    }, token);
}
