import { effect, onBeforeUnmount, onMounted, stop, type Ref } from 'vue';
import { useThemeStore } from '../stores/themeStore.ts';
import { brush } from './brush.ts';
import { drawQueue } from './drawQueue.ts';
import { echarts, type Chart, type ChartOption } from './echarts.ts';

/** How much room a chart has, and what part of its x axis is in sight: shares of the whole axis. */
export interface Sight {
  widthPx: number;
  heightPx: number;
  from: number;
  to: number;
}

export interface ChartOptions {
  /** Charts of one group share their crosshair and their zoom. */
  group?: string;
  /** Called with the x value under the crosshair, undefined where the pointer has left. */
  onHover?: (x: number | undefined) => void;
  /** Called with the part of the x axis in sight once it has stood still for a moment. */
  onZoom?: (from: number, to: number) => void;
  /** Called once with the chart, for what its option cannot say. */
  onReady?: (chart: Chart) => void;
}

const zoomSettleMs = 200;

/**
 * Keeps a chart on `element` showing what `option` returns. Reactive sources that `option` reads redraw it, with all
 * other charts in one go, at most ten times a second however often they change; so does a change of theme, size or
 * zoom. A chart that nobody sees is drawn when it is seen again.
 */
export function useChart(
  element: Ref<HTMLElement | undefined>,
  option: (sight: Sight) => ChartOption,
  options: ChartOptions = {},
): void {
  const theme = useThemeStore();
  const undo: (() => void)[] = [];
  let chart: Chart | undefined;
  let drawnShape = '';
  let isSeen = true;
  let isStale = false;
  let sight: Sight = { widthPx: 0, heightPx: 0, from: 0, to: 1 };
  let zoomTimer: ReturnType<typeof setTimeout> | undefined;

  // What the option reads is worked out only when it is drawn: ten times a second, not with every change.
  const draw = effect(
    () => {
      isStale = false;
      // The theme is read too: its change draws anew, in the tokens' other values.
      const [shown] = [option(sight), theme.shown];
      if (chart === undefined) return;
      const shape = shapeOf(shown);
      // Series that are there already take their new data; only where others are drawn everything is built anew.
      const isSame = shape !== '' && shape === drawnShape;
      chart.setOption(shown, isSame ? {} : { replaceMerge: ['series'] });
      drawnShape = shape;
    },
    { scheduler: redraw },
  );
  function redraw(): void {
    isStale = true;
    if (isSeen && !document.hidden) drawQueue.ask(draw);
  }
  const catchUp = () => {
    if (isStale) redraw();
  };

  onMounted(() => {
    const host = element.value;
    if (host === undefined) return;
    chart = echarts.init(host, null, { renderer: 'canvas' });
    const made = chart;
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
    chart.on('dataZoom', () => {
      const { start = 0, end = 100, startValue, endValue } = zoomOf(made);
      sight = { ...sight, from: start / 100, to: end / 100 };
      redraw();
      clearTimeout(zoomTimer);
      zoomTimer = setTimeout(() => {
        if (startValue !== undefined && endValue !== undefined) options.onZoom?.(startValue, endValue);
      }, zoomSettleMs);
    });
    brush(host, made);
    options.onReady?.(made);
    watchPlace(host, made);
    sight = { ...sight, widthPx: host.clientWidth, heightPx: host.clientHeight };
    draw();
  });

  /** Its size, and whether it is seen: behind another view, scrolled away or minimised it is not. */
  function watchPlace(host: HTMLElement, made: Chart): void {
    const size = new ResizeObserver(() => {
      if (host.clientWidth === 0) return;
      made.resize();
      if (host.clientWidth === sight.widthPx && host.clientHeight === sight.heightPx) return;
      sight = { ...sight, widthPx: host.clientWidth, heightPx: host.clientHeight };
      redraw();
    });
    size.observe(host);
    const place = new IntersectionObserver((entries) => {
      isSeen = entries.at(-1)?.isIntersecting ?? true;
      catchUp();
    });
    place.observe(host);
    document.addEventListener('visibilitychange', catchUp);
    undo.push(
      () => size.disconnect(),
      () => place.disconnect(),
      () => document.removeEventListener('visibilitychange', catchUp),
    );
  }

  onBeforeUnmount(() => {
    stop(draw);
    drawQueue.forget(draw);
    clearTimeout(zoomTimer);
    for (const each of undo) each();
    chart?.dispose();
  });
}

interface Zoom {
  start?: number;
  end?: number;
  startValue?: number;
  endValue?: number;
}
function zoomOf(chart: Chart): Zoom {
  const [zoom = {}] = (chart.getOption().dataZoom ?? []) as Zoom[];
  return zoom;
}

/** Which series an option holds, by their ids; nothing where one has none. */
function shapeOf({ series }: ChartOption): string {
  if (!Array.isArray(series)) return '';
  const ids = (series as { id?: string }[]).map(({ id }) => id);
  return ids.includes(undefined) ? '' : ids.join();
}
