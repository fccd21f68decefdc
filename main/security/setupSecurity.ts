import { app, session } from 'electron';
import { appOrigin } from '../protocol/setupProtocol.ts';

/** Pages stay on the app's own origin, open no windows and are given no device, location or notification right. */
export function setupSecurity(): void {
  app.on('web-contents-created', (_event, contents) => {
    contents.on('will-navigate', (event) => {
      if (!event.url.startsWith(`${appOrigin}/`)) event.preventDefault();
    });
    contents.on('will-redirect', (event) => event.preventDefault());
    contents.on('will-attach-webview', (event) => event.preventDefault());
    contents.setWindowOpenHandler(() => ({ action: 'deny' }));
  });
  void app.whenReady().then(() => {
    session.defaultSession.setPermissionRequestHandler((_contents, permission, answer) => {
      answer(permission === 'clipboard-sanitized-write');
    });
    session.defaultSession.setPermissionCheckHandler(() => false);
  });
}
