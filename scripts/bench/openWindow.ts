import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { _electron, type ElectronApplication, type Page } from '@playwright/test';
import { attachCore } from '../../main/core/attach.ts';

/** A sixtieth of a second: the work that one frame may cost. */
export const frameMs = 1000 / 60;

/** An empty home in a temporary folder. */
export const newHome = (name: string) => mkdtempSync(join(tmpdir(), `tessera-${name}-`));
export function removeHome(home: string): void {
  rmSync(home, { recursive: true, force: true, maxRetries: 5 });
}

/** The real window on a home, by the Electron that `TESSERA_ELECTRON_PROGRAM` names. */
export async function openWindow(
  home: string,
  flags: string[] = [],
): Promise<{ app: ElectronApplication; page: Page }> {
  const program = process.env.TESSERA_ELECTRON_PROGRAM;
  if (program === undefined) throw new Error('TESSERA_ELECTRON_PROGRAM names no Electron');
  const app = await _electron.launch({
    executablePath: program,
    args: [resolve(import.meta.dirname, '../..'), '--home', home, ...flags],
    env: {
      ...(process.env as Record<string, string>),
      TESSERA_NO_DIALOGS: '1',
      ...(process.getuid?.() === 0 && { ELECTRON_DISABLE_SANDBOX: '1' }),
    },
  });
  return { app, page: await app.firstWindow() };
}

/** A dataset of these lines, imported into the home by a client of its core; resolves to its id. */
export async function importLines(home: string, lines: string[]): Promise<string> {
  const path = join(home, 'many.jsonl');
  writeFileSync(path, lines.join(''));
  const core = await attachCore(home);
  const { dataset } = await core.call('datasets:import', { paths: [path] });
  core.close();
  return dataset.id;
}

export async function showRoute(page: Page, route: string): Promise<void> {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, route);
}

/** Reads the page's own counters (`ThreadTime`: seconds that its thread has computed). */
export async function pageMetrics(page: Page): Promise<() => Promise<Map<string, number>>> {
  const devTools = await page.context().newCDPSession(page);
  await devTools.send('Performance.enable');
  return async () =>
    new Map((await devTools.send('Performance.getMetrics')).metrics.map(({ name, value }) => [name, value]));
}
