import { z } from 'zod';
import { call, stream } from './channel.ts';
import { errorSchema } from './errors.ts';

/** What the window's own process answers: files, dialogs, theme, and how its core is. All else goes to the core. */
export const themeChoice = z.enum(['system', 'light', 'dark']);
export type ThemeChoice = z.infer<typeof themeChoice>;

export const coreState = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('starting') }),
  z.object({ kind: z.literal('ready') }),
  /** The core could not start, or went away; `error` says why, `log` is where to read on. */
  z.object({ kind: z.literal('lost'), error: errorSchema, log: z.string() }),
]);
export type CoreState = z.infer<typeof coreState>;

/** The views with a place of their own, in the order of the rail and of Ctrl 1, Ctrl 2, …: their routes' names. */
export const views = ['datasets', 'packing', 'train', 'runs', 'compare', 'machine'] as const;
export type View = (typeof views)[number];

/** What a view is called in the menu, on the rail and in the command palette. */
export const viewTitle = (view: View) => view.charAt(0).toUpperCase() + view.slice(1);

export const menuCommand = z.enum([
  'open-files',
  'open-recipe',
  ...views.map((view) => `go-${view}` as const),
  'go-settings',
  'palette',
  'find',
  'shortcuts',
]);
export type MenuCommand = z.infer<typeof menuCommand>;

export const hostInfo = z.object({
  version: z.string(),
  electron: z.string(),
  platform: z.string(),
  home: z.string(),
  theme: themeChoice,
});

export const hostChannels = {
  'host:info': call({ args: z.object({}), result: hostInfo }),
  /** The page can be used: the moments on its way there, in milliseconds since 1970, by name. */
  'host:page-usable': call({
    args: z.object({ marks: z.record(z.string(), z.number()) }),
    result: z.object({}),
  }),
  'host:core-state': stream({ args: z.object({}), event: coreState, key: () => 'state' }),
  'host:restart-core': call({ args: z.object({}), result: z.object({}) }),
  'host:set-theme': call({ args: z.object({ theme: themeChoice }), result: z.object({}) }),
  /** Files given to the program: opened with it, passed by a second start, or chosen in its menu. */
  'host:incoming-files': stream({ args: z.object({}), event: z.object({ paths: z.array(z.string()) }) }),
  /** A route to show, asked for from outside the page (a notification, the tray). */
  'host:navigate': stream({ args: z.object({}), event: z.object({ route: z.string() }) }),
  'host:menu': stream({ args: z.object({}), event: z.object({ command: menuCommand }) }),
  'host:choose-paths': call({
    args: z.object({ kind: z.enum(['data', 'recipe', 'model', 'folder']) }),
    result: z.object({ paths: z.array(z.string()) }),
  }),
  /** A small text file that the person chose or dropped (a recipe); at most a megabyte. */
  'host:read-text': call({ args: z.object({ path: z.string() }), result: z.object({ text: z.string() }) }),
  /** Asks where, then writes. `path` is absent where the person changed their mind. */
  'host:save-file': call({
    args: z.object({ suggestedName: z.string(), content: z.union([z.string(), z.instanceof(Uint8Array)]) }),
    result: z.object({ path: z.string().optional() }),
  }),
  /** The home of the next start. */
  'host:set-home': call({ args: z.object({ path: z.string().min(1) }), result: z.object({}) }),
  /** Ends the program and starts it in another home; runs of this one go on. */
  'host:start-again': call({ args: z.object({ home: z.string().min(1) }), result: z.object({}) }),
  'host:reveal': call({ args: z.object({ path: z.string() }), result: z.object({}) }),
  'host:copy-text': call({ args: z.object({ text: z.string() }), result: z.object({}) }),
};
