import { effect, onBeforeUnmount, onMounted, stop, type Ref } from 'vue';
import { useThemeStore } from '../stores/themeStore.ts';
import { echarts, type Chart, type ChartOption } from './echarts.ts';

const redrawIntervalMs = 100;
const slowestMs = 500;
/** What drawing may take of the page's thread, all charts together. */
const drawingShare = 0.3;
/** What each chart's drawing took of late, in milliseconds. */
const costs = new Map<symbol, number>();

function paceMs(): number {
  let sum = 0;
  for (const cost of costs.values()) sum += cost;
  return Math.min(slowestMs, Math.max(redrawIntervalMs, sum / drawingShare));
}
const minBrushPx = 6;

export interface ChartOptions {
  /** Charts of one group share their crosshair and their zoom. */
  group?: string;
  /** Called with the x value under the crosshair, undefined where the pointer has left. */
  onHover?: (x: number | undefined) => void;
  /** Called with the part of the x axis in sight once it has stood still for a moment. */
  onZoom?: (from: number, to: number) => void;
}

const zoomSettleMs = 200;

/**
 * Keeps a chart on `element` showing what `option` returns. Reactive sources that `option` reads redraw it, at most
 * ten times a second and less often where drawing is slow, however often they change; so does a change of theme or
 * size.
 */
export function useChart(
  element: Ref<HTMLElement | undefined>,
  option: () => ChartOption,
  options: ChartOptions = {},
): void {
  const theme = useThemeStore();
  const key = Symbol('chart');
  let chart: Chart | undefined;
  let observer: ResizeObserver | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let drawnAtMs = -Infinity;
  let zoomTimer: ReturnType<typeof setTimeout> | undefined;

  // What the option reads is worked out only when it is drawn: ten times a second, not with every change.
  const draw = effect(
    () => {
      timer = undefined;
      drawnAtMs = performance.now();
      // The theme is read too: its change draws anew, in the tokens' other values.
      const [shown] = [option(), theme.shown];
      chart?.setOption(shown, { replaceMerge: ['series'], lazyUpdate: false });
      const cost = performance.now() - drawnAtMs;
      costs.set(key, 0.7 * (costs.get(key) ?? cost) + 0.3 * cost);
    },
    {
      scheduler: () => {
        redraw();
      },
    },
  );
  const redraw = () => {
    timer ??= setTimeout(draw, Math.max(0, paceMs() - (performance.now() - drawnAtMs)));
  };

  onMounted(() => {
    const host = element.value;
    if (host === undefined) return;
    chart = echarts.init(host, null, { renderer: 'canvas' });
    if (options.group !== undefined) {
      chart.group = options.group;
      echarts.connect(options.group);
    }
    chart.on('updateAxisPointer', (event) => {
      const axis = (event as { axesInfo?: { axisDim: string; value: number }[] }).axesInfo?.find(
        ({ axisDim }) => axisDim === 'x',
      );
      options.onHover?.(axis?.value);
    });
    host.addEventListener('mouseleave', () => options.onHover?.(undefined));
    observer = new ResizeObserver(() => chart?.resize());
    observer.observe(host);
    if (options.onZoom !== undefined)
      chart.on('dataZoom', () => {
        clearTimeout(zoomTimer);
        zoomTimer = setTimeout(tellZoom, zoomSettleMs);
      });
    brush(host);
    draw();
  });

  function tellZoom(): void {
    const [{ startValue, endValue } = {}] = (chart?.getOption().dataZoom ?? []) as {
      startValue?: number;
      endValue?: number;
    }[];
    if (startValue !== undefined && endValue !== undefined) options.onZoom?.(startValue, endValue);
  }

  /** Dragging over a stretch zooms in on it; a double click shows all again. */
  function brush(host: HTMLElement): void {
    let from: number | undefined;
    const band = document.createElement('div');
    band.className = 'cv-brush';
    const within = (event: PointerEvent) => event.clientX - host.getBoundingClientRect().left;
    host.addEventListener('pointerdown', (event) => {
      if (event.button !== 0 || event.shiftKey) return;
      from = within(event);
      host.setPointerCapture(event.pointerId);
    });
    host.addEventListener('pointermove', (event) => {
      if (from === undefined) return;
      const to = within(event);
      if (Math.abs(to - from) < minBrushPx) return;
      if (!band.isConnected) host.append(band);
      band.style.left = `${String(Math.min(from, to))}px`;
      band.style.width = `${String(Math.abs(to - from))}px`;
    });
    host.addEventListener('pointerup', (event) => {
      if (from === undefined) return;
      const places = [from, within(event)].sort((a, b) => a - b);
      from = undefined;
      band.remove();
      if ((places[1] ?? 0) - (places[0] ?? 0) < minBrushPx) return;
      const [startValue, endValue] = places.map((px) => chart?.convertFromPixel({ xAxisIndex: 0 }, px));
      chart?.dispatchAction({ type: 'dataZoom', startValue, endValue });
    });
    host.addEventListener('dblclick', () => chart?.dispatchAction({ type: 'dataZoom', start: 0, end: 100 }));
  }
  onBeforeUnmount(() => {
    costs.delete(key);
    stop(draw);
    clearTimeout(timer);
    clearTimeout(zoomTimer);
    observer?.disconnect();
    chart?.dispose();
  });
}
