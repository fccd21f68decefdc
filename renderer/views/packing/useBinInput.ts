import { ref, watch, type Ref } from 'vue';
import {
  clampCamera,
  levelOf,
  panBy,
  reveal,
  scaleOf,
  spotAt,
  zoomAt,
  zoomFor,
  type Camera,
  type Spot,
  type Stage,
} from './camera.ts';
import { mapOf, plotOf } from './paint.ts';
import { placementAt, type Scene } from './scene.ts';

interface BinInput {
  canvas: Ref<HTMLCanvasElement | undefined>;
  stage: Ref<Stage>;
  camera: Ref<Camera>;
  cursor: Ref<Spot | undefined>;
  scene: () => Scene;
  point: (spot: Spot | undefined, at: { x: number; y: number }) => void;
  open: (example: number) => void;
}

const octavesAWheelStep = 0.35;
const octavesAKey = 0.5;
/** A pointer that moved less than this did not drag. */
const stillPx = 4;
const restMs = 150;

/** Pointer, wheel and keys over a picture of bins. */
export function useBinInput({ canvas, stage, camera, cursor, scene, point, open }: BinInput) {
  const isDragging = ref(false);
  let rest: ReturnType<typeof setTimeout> | undefined;
  let from: { x: number; y: number; camera: Camera; isMap: boolean } | undefined;

  // Asking where the canvas is costs a layout: once for every time that the pointer comes.
  let box: DOMRect | undefined;
  watch(stage, () => (box = undefined));
  const boxOf = () => (box ??= canvas.value?.getBoundingClientRect() ?? new DOMRect());
  const offsetOf = (event: MouseEvent) => ({
    x: event.clientX - boxOf().left,
    y: event.clientY - boxOf().top,
  });
  const inPlot = (event: MouseEvent) => {
    const [{ x, y }, plot] = [offsetOf(event), plotOf(boxOf())];
    return { x: x - plot.x, y: y - plot.y };
  };
  const spotUnder = (event: MouseEvent): Spot | undefined => {
    const { x, y } = inPlot(event);
    if (x < 0 || y < 0 || x >= stage.value.width || y >= stage.value.height) return undefined;
    return spotAt(stage.value, now(), x, y);
  };
  const now = () => clampCamera(stage.value, camera.value);

  function centreOn(offsetY: number): void {
    const map = mapOf(boxOf());
    const { perBin } = scaleOf(stage.value, camera.value.zoom);
    const bin = ((offsetY - map.y) / map.height) * stage.value.numBins;
    camera.value = clampCamera(stage.value, {
      ...camera.value,
      top: bin - stage.value.height / perBin / 2,
    });
  }
  function down(event: PointerEvent): void {
    if (event.button !== 0) return;
    canvas.value?.setPointerCapture(event.pointerId);
    const { x, y } = offsetOf(event);
    const isMap = x >= mapOf(boxOf()).x - 4;
    from = { x, y, camera: now(), isMap };
    if (isMap) centreOn(y);
  }
  function move(event: PointerEvent): void {
    const at = offsetOf(event);
    if (from?.isMap) {
      centreOn(at.y);
      return;
    }
    if (from) {
      const [x, y] = [from.x - at.x, from.y - at.y];
      if (!isDragging.value && Math.hypot(x, y) < stillPx) return;
      isDragging.value = true;
      point(undefined, { x: 0, y: 0 });
      camera.value = panBy(stage.value, from.camera, x, y);
      return;
    }
    point(spotUnder(event), { x: event.clientX, y: event.clientY });
  }
  function up(event: PointerEvent): void {
    const wasClick = from !== undefined && !from.isMap && !isDragging.value && event.type === 'pointerup';
    from = undefined;
    isDragging.value = false;
    const spot = wasClick ? spotUnder(event) : undefined;
    if (spot) openAt(spot);
  }
  function leave(): void {
    if (from === undefined) point(undefined, { x: 0, y: 0 });
  }
  function openAt(spot: Spot): void {
    const placement = placementAt(scene(), spot);
    if (placement !== undefined) open(scene().layout.example[placement] ?? 0);
  }
  function wheel(event: WheelEvent): void {
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 33 : 1;
    const [across, down] = [event.deltaX * unit, event.deltaY * unit];
    // With Shift some systems turn the wheel's direction; without, a trackpad moves sideways by itself.
    if (event.shiftKey) camera.value = panBy(stage.value, now(), 0, down || across);
    else if (event.altKey) camera.value = panBy(stage.value, now(), down || across, 0);
    else if (Math.abs(across) > Math.abs(down)) camera.value = panBy(stage.value, now(), across, 0);
    else {
      const { x, y } = inPlot(event);
      const octaves = Math.max(-2, Math.min(2, -down / 100)) * octavesAWheelStep;
      camera.value = zoomAt(stage.value, now(), octaves, x, y);
    }
    // The card comes back when the picture has come to rest.
    if (cursor.value) point(undefined, { x: 0, y: 0 });
    clearTimeout(rest);
    rest = setTimeout(() => {
      if (canvas.value?.isConnected) point(spotUnder(event), { x: event.clientX, y: event.clientY });
    }, restMs);
  }

  /** Where a spot is in the window: the card stands there when the keyboard leads. */
  function placeOf(spot: Spot): { x: number; y: number } {
    const { perBin, perPosition } = scaleOf(stage.value, camera.value.zoom);
    const { x, y } = plotOf(boxOf());
    return {
      x: boxOf().left + x + Math.max(0, spot.position - camera.value.left) * perPosition,
      y: boxOf().top + y + (spot.bin + 1 - camera.value.top) * perBin,
    };
  }
  function go(spot: Spot): void {
    camera.value = reveal(stage.value, now(), spot);
    point(spot, placeOf(spot));
  }
  function key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { key: name } = event;
    if (name === '+' || name === '=' || name === '-') zoomByKey(name === '-' ? -octavesAKey : octavesAKey);
    else if (name === 'Enter' && cursor.value) openAt(cursor.value);
    else if (name === 'Escape') back();
    else if (moves.has(name)) go(stepFrom(scene(), stage.value, now(), cursor.value, name));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  function zoomByKey(octaves: number): void {
    const { perBin, perPosition } = scaleOf(stage.value, now().zoom);
    const spot = cursor.value;
    const at = spot
      ? { x: (spot.position + 0.5 - now().left) * perPosition, y: (spot.bin + 0.5 - now().top) * perBin }
      : { x: stage.value.width / 2, y: stage.value.height / 2 };
    camera.value = zoomAt(stage.value, now(), octaves, at.x, at.y);
    if (spot) go(spot);
  }
  /** One level out: from tokens to tiles, from there to all bins. */
  function back(): void {
    const isTokens = levelOf(scaleOf(stage.value, now().zoom)) === 'tokens';
    const target = isTokens ? zoomFor(stage.value, 'tiles') : 0;
    camera.value = zoomAt(stage.value, now(), target - now().zoom, 0, stage.value.height / 2);
    if (!isTokens) point(undefined, { x: 0, y: 0 });
  }
  const enter = () => {
    box = undefined;
  };
  return { isDragging, enter, down, move, up, leave, wheel, key };
}

const moves = new Set([
  'ArrowLeft',
  'ArrowRight',
  'ArrowUp',
  'ArrowDown',
  'PageUp',
  'PageDown',
  'Home',
  'End',
]);

/** Where a key leads from a spot: to the neighbouring tile (at token level, token), bin or page, or to either end. */
export function stepFrom(
  scene: Scene,
  stage: Stage,
  camera: Camera,
  spot: Spot | undefined,
  key: string,
): Spot {
  const last = Math.max(0, scene.numBins - 1);
  if (key === 'Home') return { bin: 0, position: 0 };
  if (key === 'End') return { bin: last, position: 0 };
  if (!spot) return { bin: Math.min(last, Math.ceil(camera.top)), position: 0 };
  const scale = scaleOf(stage, camera.zoom);
  const page = Math.max(1, Math.floor(stage.height / scale.perBin) - 1);
  const down = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page }[key];
  if (down !== undefined) return { ...spot, bin: Math.max(0, Math.min(last, spot.bin + down)) };
  const by = key === 'ArrowLeft' ? -1 : 1;
  if (levelOf(scale) === 'tokens')
    return { ...spot, position: Math.max(0, Math.min(scene.budget - 1, spot.position + by)) };
  return neighbour(scene, spot, by);
}

/** The begin of the tile before or after, over the end of a bin into the next. */
function neighbour({ layout, begin, numBins }: Scene, { bin, position }: Spot, by: number): Spot {
  const [first, end] = [layout.binOffsets[bin] ?? 0, layout.binOffsets[bin + 1] ?? 0];
  let i = first;
  while (i + 1 < end && (begin[i + 1] ?? 0) <= position) i++;
  const next = i + by;
  if (next >= first && next < end) return { bin, position: begin[next] ?? 0 };
  const other = Math.max(0, Math.min(numBins - 1, bin + by));
  if (other === bin) return { bin, position };
  return {
    bin: other,
    position: begin[by > 0 ? (layout.binOffsets[other] ?? 0) : (layout.binOffsets[other + 1] ?? 1) - 1] ?? 0,
  };
}
