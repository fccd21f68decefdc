import { resolve } from 'node:path';
import vue from '@vitejs/plugin-vue';
import { defineConfig } from 'electron-vite';

const here = import.meta.dirname;
const developmentPort = 5173;

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
    // The page's origin is the app's own in development too: it is told where the reload signals come from.
    server: {
      host: '127.0.0.1',
      port: developmentPort,
      strictPort: true,
      ws: { protocol: 'ws', host: '127.0.0.1', clientPort: developmentPort },
    },
    plugins: [vue()],
    build: {
      outDir: 'out/renderer',
      target: 'chrome130',
      // The page's policy allows no data: fonts.
      assetsInlineLimit: 0,
      minify: true,
      // The charts, which no first view waits for.
      chunkSizeWarningLimit: 800,
      rolldownOptions: {
        input: resolve(here, 'renderer/index.html'),
        // Few files: each is a question to the main process, which is busy at that moment. What only some views need
        // stays out of the way of the first.
        output: {
          codeSplitting: {
            groups: [
              { name: 'charts', test: /node_modules\/(echarts|zrender)\// },
              { name: 'yaml', test: /node_modules\/yaml\// },
              {
                name: 'shell',
                test: /node_modules\/(@?vue|pinia|zod|lucide-vue-next)|main\/contract|renderer\/(stores|components|composables|format|client|router)/,
              },
            ],
          },
        },
      },
    },
  },
});
