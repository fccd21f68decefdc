import { onBeforeUnmount, onMounted, watch, type Ref } from 'vue';
import { useThemeStore } from '../stores/themeStore.ts';
import { echarts, type Chart, type ChartOption } from './echarts.ts';

const redrawIntervalMs = 100;

export interface ChartOptions {
  /** Charts of one group share their crosshair and their zoom. */
  group?: string;
  /** Called with the x value under the crosshair, undefined where the pointer has left. */
  onHover?: (x: number | undefined) => void;
}

/**
 * Keeps a chart on `element` showing what `option` returns. Reactive sources that `option` reads redraw it, at most
 * ten times a second, however often they change; so does a change of theme or size.
 */
export function useChart(
  element: Ref<HTMLElement | undefined>,
  option: () => ChartOption,
  options: ChartOptions = {},
): void {
  const theme = useThemeStore();
  let chart: Chart | undefined;
  let observer: ResizeObserver | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let drawnAtMs = -Infinity;
  let latest: ChartOption | undefined;

  const draw = () => {
    timer = undefined;
    drawnAtMs = performance.now();
    if (latest !== undefined) chart?.setOption(latest, { replaceMerge: ['series'], lazyUpdate: false });
  };
  const redraw = (next: ChartOption) => {
    latest = next;
    timer ??= setTimeout(draw, Math.max(0, redrawIntervalMs - (performance.now() - drawnAtMs)));
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
    watch(
      () => [option(), theme.shown] as const,
      ([next]) => {
        redraw(next);
      },
      { immediate: true, flush: 'post' },
    );
  });
  onBeforeUnmount(() => {
    clearTimeout(timer);
    observer?.disconnect();
    chart?.dispose();
  });
}
