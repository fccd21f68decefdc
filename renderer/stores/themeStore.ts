import { defineStore } from 'pinia';
import { ref, watchEffect } from 'vue';
import { themeChoice, type ThemeChoice } from '../../main/contract/host.ts';
import { client } from '../client.ts';

/** Light, dark, or as the system says; `shown` is what that comes to now. */
export const useThemeStore = defineStore('theme', () => {
  // What the settings say stands in the page as it was served.
  const choice = ref(themeChoice.catch('system').parse(document.documentElement.dataset.themeChoice));
  const system = window.matchMedia('(prefers-color-scheme: light)');
  const shown = ref<'light' | 'dark'>('dark');
  const settle = () => {
    shown.value = choice.value === 'system' ? (system.matches ? 'light' : 'dark') : choice.value;
  };

  function start(): void {
    settle();
    system.addEventListener('change', settle);
    watchEffect(() => {
      document.documentElement.dataset.theme = shown.value;
    });
  }

  async function choose(next: ThemeChoice): Promise<void> {
    choice.value = next;
    settle();
    await client.call('host:set-theme', { theme: next });
  }

  return { choice, shown, start, choose };
});
