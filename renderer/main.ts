import '@fontsource-variable/inter';
import '@fontsource-variable/jetbrains-mono';
import './styles/tokens.css';
import './styles/shell.css';
import './styles/layers.css';
import './styles/run.css';
import './styles/runs.css';
import './styles/compare.css';
import './styles/train.css';
import './styles/machine.css';
import './styles/packing.css';
import './styles/datasets.css';
import './styles/tokenTiles.css';
import './styles/first.css';
import { createPinia } from 'pinia';
import { createApp } from 'vue';
import App from './App.vue';
import { createAppRouter } from './router.ts';
import { useCoreStore } from './stores/coreStore.ts';
import { useThemeStore } from './stores/themeStore.ts';

const app = createApp(App);
app.use(createPinia());
// The theme is known before the first paint; the core may still be starting.
await useThemeStore().start();
useCoreStore().start();
app.use(createAppRouter());
app.mount('#app');
