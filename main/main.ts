import { app } from 'electron';
import { createAppContext } from './appContext.ts';
import { setupBridge } from './bridge/setupBridge.ts';
import { setupCore } from './coreHost/setupCore.ts';
import { setupRuns } from './coreHost/setupRuns.ts';
import { setupDisplay } from './display/setupDisplay.ts';
import { setupErrors } from './errors/setupErrors.ts';
import { setupFonts } from './fonts/setupFonts.ts';
import { setupGpu } from './gpu/setupGpu.ts';
import { setupIncomingFiles } from './instance/setupIncomingFiles.ts';
import { setupSingleInstance } from './instance/setupSingleInstance.ts';
import { setupMenu } from './menus/setupMenu.ts';
import { setupNotifications } from './notifications/setupNotifications.ts';
import { setupPower } from './power/setupPower.ts';
import { registerAppScheme, setupProtocol } from './protocol/setupProtocol.ts';
import { setupQuit } from './quit/setupQuit.ts';
import { setupSecurity } from './security/setupSecurity.ts';
import { markStart } from './startMarks.ts';
import { setupTray } from './tray/setupTray.ts';
import { setupWindows } from './windows/setupWindows.ts';

// Boot order. What must come before Electron is ready stands first; a second start hands its files over and ends.
markStart('main loaded');
setupErrors();
setupDisplay();
const context = createAppContext();
if (setupSingleInstance(context)) {
  registerAppScheme();
  setupSecurity();
  setupFonts();
  setupGpu(context);
  setupIncomingFiles(context);
  // Not a top-level await: an ES-module main that awaits here hangs.
  void app.whenReady().then(() => {
    markStart('electron ready');
    setupProtocol(context);
    setupBridge(context);
    setupMenu(context);
    setupWindows(context);
    markStart('window created');
    setupCore(context);
    setupRuns(context);
    setupNotifications(context);
    setupTray(context);
    setupPower(context);
    setupQuit(context);
    markStart('boot done');
  });
}
