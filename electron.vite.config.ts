import { resolve } from 'node:path';
import vue from '@vitejs/plugin-vue';
import { defineConfig } from 'electron-vite';

const here = import.meta.dirname;

export default defineConfig({
  main: {
    build: {
      outDir: 'out/main',
      // Electron 33's Node; the core itself is not bundled here, it runs in its own Node 24.
      target: 'node20',
      // Bundled whole: the packaged app carries no packages of its own beside the core's.
      externalizeDeps: false,
      rolldownOptions: { input: { main: resolve(here, 'main/main.ts') } },
    },
  },
  preload: {
    build: {
      outDir: 'out/preload',
      target: 'node20',
      // A sandboxed preload is one CommonJS file that can require nothing but electron.
      externalizeDeps: false,
      rolldownOptions: {
        input: { preload: resolve(here, 'main/preload.ts') },
        output: { format: 'cjs', entryFileNames: '[name].cjs' },
      },
    },
  },
  renderer: {
    root: 'renderer',
    plugins: [vue()],
    build: {
      outDir: 'out/renderer',
      target: 'chrome130',
      // The page's policy allows no data: fonts.
      assetsInlineLimit: 0,
      rolldownOptions: { input: resolve(here, 'renderer/index.html') },
    },
  },
});
