import { onBeforeUnmount, onMounted, watch } from 'vue';
import { useRouter } from 'vue-router';
import { views, viewTitle, type MenuCommand } from '../../main/contract/host.ts';
import { client } from '../client.ts';
import { statusLooks } from '../components/statusLooks.ts';
import { useDatasetsStore } from '../stores/datasetsStore.ts';
import { useIncomingStore } from '../stores/incomingStore.ts';
import { usePaletteStore } from '../stores/paletteStore.ts';
import { useRunsStore } from '../stores/runsStore.ts';
import { useThemeStore } from '../stores/themeStore.ts';

/** The newest ones of each kind; the views find the rest. */
const maxOfEach = 200;

/** What the whole window answers to: the menu, the keyboard, notifications, files from outside. */
export function useShellCommands(): void {
  const router = useRouter();
  const palette = usePaletteStore();
  const incoming = useIncomingStore();
  const theme = useThemeStore();
  const runs = useRunsStore();
  const datasets = useDatasetsStore();

  const choose = async (kind: 'data' | 'recipe') => {
    incoming.take((await client.call('host:choose-paths', { kind })).paths);
  };
  const obey = (command: MenuCommand) => {
    if (command === 'palette') palette.open();
    else if (command === 'shortcuts') palette.isSheetOpen = !palette.isSheetOpen;
    else if (command === 'open-files') void choose('data');
    else if (command === 'open-recipe') void choose('recipe');
    else if (command === 'find') document.querySelector<HTMLElement>('[data-find]')?.focus();
    else void router.push({ name: command.slice('go-'.length) });
  };

  palette.provide('shell', [
    ...views.map((name, index) => ({
      id: `go-${name}`,
      title: viewTitle(name),
      group: 'Go',
      keys: `Ctrl ${String(index + 1)}`,
      run: () => void router.push({ name }),
    })),
    {
      id: 'first',
      title: 'First run: train the sample',
      group: 'Go',
      run: () => void router.push({ name: 'first' }),
    },
    {
      id: 'settings',
      title: 'Settings',
      group: 'Go',
      keys: 'Ctrl ,',
      run: () => void router.push({ name: 'settings' }),
    },
    { id: 'import', title: 'Import data…', group: 'Data', keys: 'Ctrl O', run: () => void choose('data') },
    {
      id: 'recipe',
      title: 'Open recipe…',
      group: 'Train',
      keys: 'Ctrl Shift O',
      run: () => void choose('recipe'),
    },
    {
      id: 'shortcuts',
      title: 'Keyboard shortcuts',
      group: 'Help',
      keys: '?',
      run: () => {
        obey('shortcuts');
      },
    },
    ...(['dark', 'light', 'system'] as const).map((name) => ({
      id: `theme-${name}`,
      title: name === 'system' ? 'Follow the system’s theme' : `${capital(name)} theme`,
      group: 'Theme',
      run: () => void theme.choose(name),
    })),
  ]);

  watch(
    () => runs.all,
    (all) => {
      palette.provide(
        'runs',
        all.slice(0, maxOfEach).map(({ id, name, status }) => ({
          id: `run-${id}`,
          title: name,
          group: 'Run',
          note: statusLooks[status].word,
          run: () => void router.push({ name: 'run', params: { id } }),
        })),
      );
    },
    { immediate: true },
  );
  watch(
    () => datasets.all,
    (all) => {
      palette.provide(
        'datasets',
        all.slice(0, maxOfEach).map(({ id, name }) => ({
          id: `dataset-${id}`,
          title: name,
          group: 'Dataset',
          run: () => void router.push({ name: 'datasets', params: { id } }),
        })),
      );
    },
    { immediate: true },
  );

  const onKey = (event: KeyboardEvent) => {
    const isModified = event.ctrlKey || event.metaKey;
    if (isModified && event.key.toLowerCase() === 'k') {
      event.preventDefault();
      if (palette.isOpen) palette.close();
      else palette.open();
    } else if ((event.key === '/' || event.key === '?') && !isTyping(event.target)) {
      event.preventDefault();
      obey(event.key === '/' ? 'find' : 'shortcuts');
    }
  };

  onMounted(() => {
    window.addEventListener('keydown', onKey);
    const links = [
      client.subscribe('host:menu', {}, (events) =>
        events.forEach(({ command }) => {
          obey(command);
        }),
      ),
      client.subscribe('host:navigate', {}, (events) =>
        events.forEach(({ route }) => void router.push(route)),
      ),
      client.subscribe('host:incoming-files', {}, (events) =>
        events.forEach(({ paths }) => {
          incoming.take(paths);
        }),
      ),
    ];
    onBeforeUnmount(() =>
      links.forEach((link) => {
        link.close();
      }),
    );
  });
  onBeforeUnmount(() => {
    window.removeEventListener('keydown', onKey);
  });

  watch(
    () => [incoming.data.length, incoming.recipes.length],
    ([numData, numRecipes]) => {
      if ((numRecipes ?? 0) > 0) void router.push({ name: 'train' });
      else if ((numData ?? 0) > 0) void router.push({ name: 'datasets' });
    },
    // At once: the stores take what has come in the next flush, and then there is nothing left to see.
    { flush: 'sync' },
  );
}

const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))
  );
}
