import { join } from 'node:path';
import { app, Menu, nativeImage, Tray } from 'electron';
import type { AppContext } from '../appContext.ts';

/** In the tray while a run is going: a closed window is one click away, and so is the end of it all. */
export function setupTray(context: AppContext): void {
  let tray: Tray | undefined;
  context.activeRuns.watch((runs) => {
    if (runs.length === 0) {
      tray?.destroy();
      tray = undefined;
      return;
    }
    tray ??= createTray(context);
    tray?.setToolTip(`Tessera: ${runs.map((run) => run.name).join(', ')}`);
    tray?.setContextMenu(
      Menu.buildFromTemplate([
        ...runs.map((run) => ({
          label: run.name,
          click: () => {
            context.showWindow(`/runs/${run.id}`);
          },
        })),
        { type: 'separator' as const },
        { label: 'Open Tessera', click: () => context.showWindow() },
        { label: 'Quit', click: () => app.quit() },
      ]),
    );
  });
}

function createTray(context: AppContext): Tray | undefined {
  try {
    const tray = new Tray(nativeImage.createFromPath(join(app.getAppPath(), 'assets/icons/tessera-32.png')));
    tray.on('click', () => {
      context.showWindow();
    });
    return tray;
  } catch (error) {
    // Desktops without a tray are common on Linux; the window's own status strip says the same.
    process.stderr.write(`[main ${process.pid}] no tray here: ${String(error)}\n`);
    return undefined;
  }
}
