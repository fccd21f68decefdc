import '@fontsource-variable/inter';
import '@fontsource-variable/jetbrains-mono';
import './styles/tokens.css';
import './styles/shell.css';
import './styles/layers.css';
import './styles/run.css';
import './styles/runs.css';
import './styles/compare.css';
import './styles/profile.css';
import './styles/train.css';
import './styles/machine.css';
import './styles/packing.css';
import './styles/datasets.css';
import './styles/tokenTiles.css';
import './styles/first.css';
import { createPinia } from 'pinia';
import { createApp } from 'vue';
import App from './App.vue';
import { client } from './client.ts';
import { createAppRouter } from './router.ts';
import { useCoreStore } from './stores/coreStore.ts';
import { useThemeStore } from './stores/themeStore.ts';

performance.mark('page code loaded');
const app = createApp(App);
app.use(createPinia());
// The core may still be starting: nothing here waits for it.
useThemeStore().start();
useCoreStore().start();
const router = createAppRouter();
app.use(router);
app.mount('#app');
performance.mark('page mounted');
await router.isReady();
performance.mark('page view mounted');
// Painted, and with the main thread free for a click.
requestAnimationFrame(() => {
  setTimeout(() => {
    performance.mark('page usable');
    const marks: Record<string, number> = { 'page opened': performance.timeOrigin };
    for (const { name, startTime } of performance.getEntriesByType('mark'))
      marks[name] = performance.timeOrigin + startTime;
    void client.call('host:page-usable', { marks });
  }, 0);
});
