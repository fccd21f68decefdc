import { defineStore } from 'pinia';
import { computed, ref, shallowRef, watch } from 'vue';
import type { Dataset, InterruptedImport } from '../../main/contract/datasets.ts';
import type { ErrorBody } from '../../main/contract/errors.ts';
import { client } from '../client.ts';
import { rateOf, type Sample } from './importRate.ts';
import { useCoreStore } from './coreStore.ts';
import { useIncomingStore } from './incomingStore.ts';
import { useNoticeStore } from './noticeStore.ts';
import { errorInWindow } from '../errorInWindow.ts';

type ImportOptions = Omit<Parameters<typeof client.call<'datasets:import'>>[1], 'paths'>;

/** An import that is going on, or that failed and waits to be read. */
export interface GoingImport {
  key: number;
  name: string;
  paths: string[];
  bytes: number;
  totalBytes?: number;
  /** What the first rows were recognised as, and why. */
  format?: string;
  /** `12,345 rows`, as the core counts them. */
  rows?: string;
  bytesPerSecond?: number;
  /** How much of the files was read for their hash, before their rows are. */
  readShare?: number;
  error?: ErrorBody;
}

/** The datasets of the home, and the imports that are going on. */
export const useDatasetsStore = defineStore('datasets', () => {
  const core = useCoreStore();
  const incoming = useIncomingStore();
  const notices = useNoticeStore();
  const all = shallowRef<Dataset[]>([]);
  const histograms = shallowRef<Record<string, [number, number][]>>({});
  const isLoaded = ref(false);
  const error = shallowRef<unknown>();
  const imports = ref<GoingImport[]>([]);
  /** Imports of a core that died. */
  const interrupted = shallowRef<InterruptedImport[]>([]);
  const newest = ref<string>();
  /** The import whose first rows are looked at. */
  const watched = ref<number>();
  const aborts = new Map<number, AbortController>();
  let nextKey = 1;

  async function reload(): Promise<void> {
    try {
      const list = await client.call('datasets:list', {});
      all.value = list.datasets;
      interrupted.value = list.interrupted ?? [];
      error.value = undefined;
      isLoaded.value = true;
      histograms.value = (await client.call('datasets:histograms', {})).histograms;
    } catch (caught) {
      if (isLoaded.value) notices.fail('Reading the list of datasets', caught);
      else error.value = caught;
    }
  }

  const update = (key: number, change: Partial<GoingImport>) => {
    imports.value = imports.value.map((each) => (each.key === key ? { ...each, ...change } : each));
  };
  const close = (key: number) => {
    aborts.get(key)?.abort();
    aborts.delete(key);
    imports.value = imports.value.filter((each) => each.key !== key);
  };

  /** Tells what the files are before they are in; what is wrong with them the import itself will say. */
  async function recognise(key: number, paths: string[]): Promise<void> {
    const { formats } = await client.call('datasets:sample', { source: { paths }, count: 50 });
    const most = formats.toSorted((a, b) => b.count - a.count)[0];
    if (most !== undefined) update(key, { format: `${most.format}: ${most.reason}` });
  }

  /** Imports files as one dataset; resolves to it, or to nothing where that failed or was cancelled. */
  async function importFiles(paths: string[], options: ImportOptions = {}): Promise<Dataset | undefined> {
    const key = nextKey++;
    const abort = new AbortController();
    aborts.set(key, abort);
    // Of the same files an attempt that failed says nothing any more.
    const isSame = (other: GoingImport) =>
      other.error !== undefined && other.paths.join('\n') === paths.join('\n');
    imports.value = [
      ...imports.value.filter((other) => !isSame(other)),
      { key, name: nameOf(paths), paths, bytes: 0 },
    ];
    watched.value = key;
    const samples: Sample[] = [];
    if (!paths.some((path) => path === 'bundled')) recognise(key, paths).catch(() => undefined);
    try {
      const { dataset } = await client.call(
        'datasets:import',
        { ...options, paths },
        {
          signal: abort.signal,
          onProgress: ({ done, total, detail, unit }) => {
            if (unit !== 'bytes') return;
            // Before any row is counted the files are read for their hash.
            if (detail === undefined) {
              update(key, { readShare: done / (total ?? Infinity) });
              return;
            }
            samples.push({ atMs: performance.now(), value: done });
            const bytesPerSecond = rateOf(samples);
            update(key, {
              bytes: done,
              ...(total !== undefined && { totalBytes: total }),
              rows: detail,
              ...(bytesPerSecond !== undefined && { bytesPerSecond }),
            });
          },
        },
      );
      close(key);
      // Known before it is named the newest: who follows it finds it in the list.
      await reload();
      newest.value = dataset.id;
      return dataset;
    } catch (caught) {
      const body = errorInWindow(caught);
      if (body.code === 'cancelled') close(key);
      else update(key, { error: body });
      return undefined;
    }
  }

  /** Starts an interrupted import from its beginning, as it was asked for. */
  async function importAgain({ key, args }: InterruptedImport): Promise<void> {
    interrupted.value = interrupted.value.filter((each) => each.key !== key);
    const { paths, ...options } = args;
    await importFiles([...paths], options);
    await forget(key);
  }

  async function forget(key: string): Promise<void> {
    await client.call('datasets:forget-import', { key });
    await reload();
  }

  async function remove(dataset: Dataset): Promise<void> {
    await client.call('datasets:remove', { id: dataset.id });
    await reload();
  }

  watch(
    () => core.epoch,
    (epoch) => {
      if (epoch > 0) void reload();
    },
    { immediate: true },
  );
  watch(
    () => incoming.data.length,
    () => {
      // Plain arrays: a reactive one cannot travel to the core.
      for (const paths of incoming.data.splice(0)) void importFiles([...paths]);
    },
    { immediate: true },
  );

  return {
    all,
    byId: computed(() => new Map(all.value.map((dataset) => [dataset.id, dataset]))),
    histograms,
    isLoaded,
    error,
    imports,
    interrupted,
    importAgain,
    forget,
    /** The dataset that was imported last. */
    newest,
    watched,
    reload,
    importFiles,
    /** Ends an import, or takes away one that failed. */
    close,
    remove,
  };
});

function nameOf(paths: string[]): string {
  const first = paths[0]?.split(/[\\/]/).pop() ?? '';
  return paths.length > 1 ? `${first} and ${String(paths.length - 1)} more` : first;
}
