import { app, Menu, shell, type MenuItemConstructorOptions } from 'electron';
import type { AppContext } from '../appContext.ts';
import { views, viewTitle, type MenuCommand } from '../contract/host.ts';

/** The application menu; each of its entries is also in the command palette. */
export function setupMenu(context: AppContext): void {
  const item = (label: string, command: MenuCommand, accelerator?: string): MenuItemConstructorOptions => ({
    label,
    ...(accelerator !== undefined && { accelerator }),
    click: () => {
      context.showWindow();
      context.menuCommands.emit(command);
    },
  });
  const isMac = process.platform === 'darwin';
  Menu.setApplicationMenu(
    Menu.buildFromTemplate([
      ...(isMac ? [{ role: 'appMenu' } as const] : []),
      {
        label: '&File',
        submenu: [
          item('Import data…', 'open-files', 'CmdOrCtrl+O'),
          item('Open recipe…', 'open-recipe', 'CmdOrCtrl+Shift+O'),
          item('Settings', 'go-settings', 'CmdOrCtrl+,'),
          { type: 'separator' },
          isMac ? { role: 'close' } : { role: 'quit' },
        ],
      },
      { role: 'editMenu' },
      {
        label: '&Go',
        submenu: [
          ...views.map((view, index) =>
            item(viewTitle(view), `go-${view}`, `CmdOrCtrl+${String(index + 1)}`),
          ),
          { type: 'separator' },
          item('Command palette', 'palette', 'CmdOrCtrl+K'),
          item('Find', 'find', 'CmdOrCtrl+F'),
        ],
      },
      {
        label: '&View',
        submenu: [
          { role: 'reload' },
          { role: 'toggleDevTools' },
          { type: 'separator' },
          { role: 'resetZoom' },
          { role: 'zoomIn' },
          { role: 'zoomOut' },
          { role: 'togglefullscreen' },
        ],
      },
      { role: 'windowMenu' },
      {
        label: '&Help',
        submenu: [
          item('Keyboard shortcuts', 'shortcuts'),
          {
            label: 'Show the core’s log',
            click: () => {
              shell.showItemInFolder(`${context.home}/core.log`);
            },
          },
          { label: `Tessera ${app.getVersion()}`, enabled: false },
        ],
      },
    ]),
  );
}
