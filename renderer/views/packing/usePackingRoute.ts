import { computed, shallowRef, watch } from 'vue';
import { onBeforeRouteLeave, useRoute, useRouter } from 'vue-router';
import type { Camera, Viewpoint } from './camera.ts';
import type { ColorBy } from './scene.ts';
import { strategies, type PackingChoice, type Strategy } from './usePlans.ts';

const restMs = 300;

/** Everything that the view shows stands in its address: what is packed, which two plans are drawn, and where. */
export function usePackingRoute(firstDataset: () => string) {
  const route = useRoute();
  const router = useRouter();
  const text = (name: string) => {
    const value = route.query[name];
    return typeof value === 'string' ? value : undefined;
  };
  const number = (name: string, otherwise: number, least: number) => {
    const value = Number(text(name) ?? otherwise);
    return Number.isFinite(value) && value >= least ? value : otherwise;
  };
  const strategy = (name: string, otherwise: Strategy) =>
    strategies.find((one) => one.name === text(name))?.name ?? otherwise;
  const set = (change: Record<string, string | undefined>) => {
    if (route.name === 'packing') void router.replace({ query: { ...route.query, ...change } });
  };

  const dataset = computed(() => text('dataset') ?? firstDataset());
  const choice = computed<PackingChoice>((before) => {
    const now = {
      dataset: dataset.value,
      budget: Math.round(number('budget', 2048, 2)),
      epochs: Math.round(number('epochs', 1, 1)),
      binsPerStep: Math.round(number('step', 1, 1)),
    };
    // The same choice is the same object, so that a moved camera packs nothing anew.
    return before && JSON.stringify(before) === JSON.stringify(now) ? before : now;
  });
  const left = computed({
    get: () => strategy('left', 'padded'),
    set: (name) => {
      set({ left: name });
    },
  });
  const right = computed({
    get: () => strategy('right', 'best-fit'),
    set: (name) => {
      set({ right: name });
    },
  });
  const colorBy = computed<ColorBy>({
    get: () => (text('color') === 'source' ? 'source' : 'length'),
    set: (by) => {
      set({ color: by });
    },
  });
  const pane = computed<'bins' | 'budgets'>({
    get: () => (text('show') === 'budgets' ? 'budgets' : 'bins'),
    set: (shown) => {
      set({ show: shown });
    },
  });

  const inRoute = () => ({ zoom: number('zoom', 0, 0), left: number('x', 0, 0), top: number('y', 0, 0) });
  const camera = shallowRef<Camera>(inRoute());
  let written = camera.value;
  let timer: ReturnType<typeof setTimeout> | undefined;
  watch(camera, (moved) => {
    if (moved === written) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      const round = (value: number) => Math.round(value * 1000) / 1000;
      written = { zoom: round(moved.zoom), left: round(moved.left), top: round(moved.top) };
      const text = (value: number) => (value === 0 ? undefined : String(value));
      set({ zoom: text(written.zoom), x: text(written.left), y: text(written.top) });
    }, restMs);
  });
  // Written while another view is on its way, the place would call that back.
  onBeforeRouteLeave(() => {
    clearTimeout(timer);
  });
  // An address that the view did not write (a link, back and forward) is gone to.
  watch(inRoute, (there) => {
    if (JSON.stringify(there) === JSON.stringify(written)) return;
    written = there;
    camera.value = there;
  });
  /** Another plan has another shape: a place in the old one means nothing in it. */
  const choose = (change: Record<string, string>) => {
    clearTimeout(timer);
    written = { zoom: 0, left: 0, top: 0 };
    camera.value = written;
    set({ ...change, zoom: undefined, x: undefined, y: undefined });
  };
  // In an object, so that templates hand it on without reading it: a move draws two pictures and renders nothing.
  const viewpoint: Viewpoint = { camera };
  return { choice, left, right, colorBy, pane, viewpoint, set, choose };
}
