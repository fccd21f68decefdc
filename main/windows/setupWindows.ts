import { join } from 'node:path';
import { app, BrowserWindow, dialog, nativeTheme, screen } from 'electron';
import type { AppContext } from '../appContext.ts';
import { appOrigin } from '../protocol/setupProtocol.ts';
import type { Settings } from '../settings.ts';
import { placeWindow, smallest, zoomThatFits } from './placement.ts';

/** The window: where it was, in the theme it had, shown when it has something to show; back after its page crashed. */
export function setupWindows(context: AppContext): void {
  nativeTheme.themeSource = context.settings.get().theme;
  let window: BrowserWindow | undefined;
  context.showWindow = (route) => {
    if (window === undefined || window.isDestroyed()) window = openWindow(context);
    if (window.isMinimized()) window.restore();
    window.show();
    window.focus();
    if (route !== undefined) context.routes.emit(route);
  };
  app.on('activate', () => {
    context.showWindow();
  });
  // A closed window leaves the program in the tray while a run is going; otherwise that was the end of it.
  app.on('window-all-closed', () => {
    if (context.activeRuns.get().length === 0) app.quit();
  });
  context.showWindow();
}

function openWindow(context: AppContext): BrowserWindow {
  const remembered = context.settings.get().window;
  const displays = [screen.getPrimaryDisplay(), ...screen.getAllDisplays()].map(
    (display) => display.workArea,
  );
  const window = new BrowserWindow({
    ...placeWindow(remembered?.bounds, displays),
    minWidth: Math.min(smallest.width, displays[0]?.width ?? smallest.width),
    minHeight: Math.min(smallest.height, displays[0]?.height ?? smallest.height),
    show: false,
    title: 'Tessera',
    icon: join(app.getAppPath(), 'assets/icons/tessera-256.png'),
    // The page's own background: no white flash before the first paint.
    backgroundColor: nativeTheme.shouldUseDarkColors ? '#121417' : '#fbfcfc',
    webPreferences: {
      preload: join(import.meta.dirname, '../preload/preload.cjs'),
      sandbox: true,
      contextIsolation: true,
      nodeIntegration: false,
      spellcheck: false,
    },
  });
  keepFitting(window, context.settings);
  if (remembered?.isMaximized === true) window.maximize();
  window.once('ready-to-show', () => {
    window.show();
  });
  window.on('close', () => {
    context.settings.update({
      window: { bounds: window.getNormalBounds(), isMaximized: window.isMaximized() },
    });
  });
  window.webContents.on('render-process-gone', (_event, details) => {
    if (details.reason !== 'clean-exit') void offerReload(window, details.reason);
  });
  // Files are given to the page by its own drop handler; a drop outside of it must not navigate.
  void window.loadURL(`${appOrigin}/`);
  return window;
}

/**
 * Where there is room the zoom is the person's own (View, Zoom in); where there is none the page is made to fit. Chromium
 * keeps a zoom over starts, so that one made to fit is remembered as such, and undone in a larger window.
 */
function keepFitting(window: BrowserWindow, settings: Settings): void {
  const fit = () => {
    const wasFitted = settings.get().isFitted;
    const [width = smallest.width, height = smallest.height] = window.getContentSize();
    const zoom = zoomThatFits({ width, height });
    if (zoom < 1 || wasFitted) window.webContents.setZoomFactor(zoom);
    if (wasFitted !== zoom < 1) settings.update({ isFitted: zoom < 1 });
  };
  window.on('resize', fit);
  window.webContents.on('did-finish-load', fit);
}

async function offerReload(window: BrowserWindow, reason: string): Promise<void> {
  if (process.env.TESSERA_NO_DIALOGS === '1') {
    window.reload();
    return;
  }
  const answer = await dialog.showMessageBox(window, {
    type: 'warning',
    message: 'The page of this window stopped working.',
    detail: `Reason: ${reason}. Runs are not affected: they belong to the core, which goes on.`,
    buttons: ['Reload', 'Close window'],
    defaultId: 0,
    cancelId: 1,
  });
  if (window.isDestroyed()) return;
  if (answer.response === 0) window.reload();
  else window.destroy();
}
