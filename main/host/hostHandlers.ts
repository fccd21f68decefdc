import { readFile, stat } from 'node:fs/promises';
import {
  app,
  BrowserWindow,
  clipboard,
  dialog,
  nativeTheme,
  shell,
  type OpenDialogOptions,
  type WebContents,
} from 'electron';
import type { AppContext } from '../appContext.ts';
import { untilAborted, type Handlers } from '../contract/channel.ts';
import { TesseraError } from '../contract/errors.ts';
import { openHome, setHomePointer } from '../core/home.ts';
import { writeWhole } from '../core/writeWhole.ts';
import { dataEndings } from '../contract/dataFormats.ts';
import type { hostChannels } from '../contract/host.ts';
import { relaunch, withHome } from '../instance/relaunch.ts';
import { markStart } from '../startMarks.ts';

const maxTextBytes = 1 << 20;

const pickers: Record<'data' | 'recipe' | 'model' | 'folder', OpenDialogOptions> = {
  data: {
    title: 'Choose chats or texts',
    properties: ['openFile', 'openDirectory', 'multiSelections'],
    filters: [
      { name: 'Datasets', extensions: dataEndings },
      { name: 'All files', extensions: ['*'] },
    ],
  },
  recipe: {
    title: 'Open a recipe',
    properties: ['openFile'],
    filters: [{ name: 'Recipes', extensions: ['yaml', 'yml'] }],
  },
  model: { title: 'Choose a model folder', properties: ['openDirectory'] },
  folder: { title: 'Choose a folder', properties: ['openDirectory', 'createDirectory'] },
};

/** What this process does for one page. */
export function createHostHandlers(context: AppContext, page: WebContents): Handlers<typeof hostChannels> {
  const owner = () => BrowserWindow.fromWebContents(page);
  return {
    'host:info': () => ({
      version: app.getVersion(),
      electron: process.versions.electron,
      platform: process.platform,
      home: context.home,
      theme: context.settings.get().theme,
    }),
    'host:page-usable': ({ marks }) => {
      for (const [name, atMs] of Object.entries(marks)) markStart(name, atMs);
      markStart('usable, told');
      context.isPageUsable.set(true);
      return {};
    },
    'host:core-state': (_args, emit, signal) => whileOpen(signal, () => context.coreState.watch(emit)),
    'host:restart-core': () => {
      context.restartCore();
      return {};
    },
    'host:set-theme': ({ theme }) => {
      nativeTheme.themeSource = theme;
      context.settings.update({ theme });
      return {};
    },
    'host:incoming-files': (_args, emit, signal) =>
      whileOpen(signal, () => context.incomingFiles.listen((paths) => emit({ paths }))),
    'host:navigate': (_args, emit, signal) =>
      whileOpen(signal, () => context.routes.listen((route) => emit({ route }))),
    'host:menu': (_args, emit, signal) =>
      whileOpen(signal, () => context.menuCommands.listen((command) => emit({ command }))),
    'host:choose-paths': async ({ kind }) => {
      const parent = owner();
      const answer =
        parent === null
          ? await dialog.showOpenDialog(pickers[kind])
          : await dialog.showOpenDialog(parent, pickers[kind]);
      return { paths: answer.filePaths };
    },
    'host:read-text': async ({ path }) => {
      const { size } = await stat(path);
      if (size > maxTextBytes)
        throw new TesseraError(
          'fileTooLarge',
          `${path} has ${String(size)} bytes; a recipe has a few hundred`,
        );
      return { text: await readFile(path, 'utf8') };
    },
    'host:save-file': async ({ suggestedName, content }) => {
      const parent = owner();
      const options = { defaultPath: suggestedName };
      const answer =
        parent === null ? await dialog.showSaveDialog(options) : await dialog.showSaveDialog(parent, options);
      if (answer.canceled || answer.filePath === '') return {};
      await writeWhole(answer.filePath, content);
      return { path: answer.filePath };
    },
    'host:set-home': ({ path }) => {
      // Checked before it is chosen: a home that cannot be written would keep the next start from working.
      openHome(path);
      setHomePointer(path);
      return {};
    },
    'host:start-again': ({ home }) => {
      // After the answer has left: the page that asked is gone with the program.
      setImmediate(() => {
        relaunch(context, withHome(process.argv.slice(1), home));
      });
      return {};
    },
    'host:reveal': ({ path }) => {
      shell.showItemInFolder(path);
      return {};
    },
    'host:copy-text': ({ text }) => {
      void clipboard.writeText(text);
      return {};
    },
  };
}

async function whileOpen(signal: AbortSignal, listen: () => () => void): Promise<void> {
  const stop = listen();
  await untilAborted(signal);
  stop();
}
