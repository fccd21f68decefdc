import type { Chart } from './echarts.ts';

const minBrushPx = 6;

/** Dragging over a stretch zooms in on it; a double click shows all again. */
export function brush(host: HTMLElement, chart: Chart): void {
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
    const [startValue, endValue] = places.map((px) => chart.convertFromPixel({ xAxisIndex: 0 }, px));
    chart.dispatchAction({ type: 'dataZoom', startValue, endValue });
  });
  host.addEventListener('dblclick', () => {
    chart.dispatchAction({ type: 'dataZoom', start: 0, end: 100 });
  });
}
