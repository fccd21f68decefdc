import { app } from 'electron';

/** Where `npm run dev` serves the renderer's sources (`http://127.0.0.1:5173`); never in a packaged app. */
export const developmentServer = app.isPackaged ? undefined : process.env.ELECTRON_RENDERER_URL;
