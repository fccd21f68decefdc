import { csvLines, toJson, type ChartTable } from '../../charts/tableFile.ts';
import { integer } from '../../format.ts';
import { clampCamera, maxZoom, scaleOf, type Camera, type Stage } from './camera.ts';
import { chromeOf } from './chrome.ts';
import { inksOf } from './inks.ts';
import { BinPainter, plotOf } from './paint.ts';
import { factsOf, type ColorBy, type Scene } from './scene.ts';
import { svgOfPlans } from './svgPlan.ts';
import type { WordsOf } from './tokenLayer.ts';

/** A plan on its way into a file, with the line that stands above it. */
export interface ShownPlan {
  name: string;
  title: string;
  caption: string;
  scene: Scene;
}

export interface PictureOptions {
  colorBy: ColorBy;
  /** Size of one plan's picture as it is shown, in CSS pixels. */
  size: { width: number; height: number };
  /** What is shown; absent for all bins. */
  camera: Camera | undefined;
  wordsOf: WordsOf;
}

export type FileKind = 'png-view' | 'png-whole' | 'svg-view' | 'svg-whole' | 'csv' | 'json';

/** The content of a file of some kind, and how its name ends. */
export async function fileOfPlans(
  kind: FileKind,
  plans: ShownPlan[],
  options: PictureOptions,
): Promise<{ suffix: string; content: string | Uint8Array<ArrayBuffer> }> {
  if (kind === 'csv') return { suffix: '.csv', content: await csvOfPlans(plans) };
  if (kind === 'json') return { suffix: '.json', content: await jsonOfPlans(plans) };
  const isWhole = kind.endsWith('whole');
  const picture = isWhole ? { ...options, camera: undefined } : options;
  const suffix = isWhole ? '-all' : '';
  if (kind.startsWith('svg')) return { suffix: `${suffix}.svg`, content: svgFile(plans, picture) };
  return { suffix: `${suffix}.png`, content: await pngOfPlans(plans, picture) };
}

const headHeight = 44;
const wholeWidth = 1000;
/** A canvas beyond this fails in some programs that open it. */
const mostHeight = 12_000;
const wholeBin = 8;

/** Size and camera of a file's picture: what is shown, or all bins, each as high as fits. */
function framing(plans: ShownPlan[], { size, camera }: PictureOptions) {
  const numBins = Math.max(1, ...plans.map(({ scene }) => scene.numBins));
  const insets = { width: size.width - plotOf(size).width, height: size.height - plotOf(size).height };
  const whole = {
    width: wholeWidth,
    height: Math.round(Math.min(mostHeight / 2, Math.max(200, numBins * wholeBin)) + insets.height),
  };
  const shown = camera === undefined ? whole : size;
  const plot = plotOf(shown);
  const budget = plans[0]?.scene.budget ?? 1;
  const stage: Stage = { width: plot.width, height: plot.height, budget, numBins };
  return {
    size: shown,
    stage,
    camera: clampCamera(stage, camera ?? { zoom: 0, left: 0, top: 0 }),
    headHeight,
  };
}

/** The plans side by side, twice as fine as they are shown. */
async function pngOfPlans(plans: ShownPlan[], options: PictureOptions): Promise<Uint8Array<ArrayBuffer>> {
  const { size, stage, camera } = framing(plans, options);
  const density = 2;
  const chrome = chromeOf();
  const canvas = new OffscreenCanvas(
    size.width * plans.length * density,
    (size.height + headHeight) * density,
  );
  const context = canvas.getContext('2d');
  if (context === null) throw new Error('this window has no canvas');
  context.fillStyle = chrome.ground;
  context.fillRect(0, 0, canvas.width, canvas.height);
  plans.forEach(({ scene, title, caption }, column) => {
    const part = new OffscreenCanvas(size.width * density, size.height * density);
    const painter = new BinPainter(scene, inksOf(options.colorBy, density), chrome, density);
    const inner = part.getContext('2d');
    if (inner === null) return;
    const view = {
      ...{ size, stage, camera, cursor: undefined, wordsOf: options.wordsOf },
      ...{ withMap: false, newTexts: Infinity },
    };
    while (painter.paint(inner, view).canRefine) painter.work(Infinity);
    context.drawImage(part, column * part.width, headHeight * density);
    context.setTransform(density, 0, 0, density, column * part.width, 0);
    context.save();
    context.beginPath();
    context.rect(0, 0, size.width - 8, headHeight);
    context.clip();
    context.textBaseline = 'alphabetic';
    context.fillStyle = chrome.text;
    context.font = `600 13px ${chrome.ui}`;
    context.fillText(title, 16, 20);
    context.fillStyle = chrome.textQuiet;
    context.font = `11px ${chrome.ui}`;
    context.fillText(caption, 16, 36);
    context.restore();
    context.setTransform(1, 0, 0, 1, 0, 0);
  });
  return new Uint8Array(await (await canvas.convertToBlob({ type: 'image/png' })).arrayBuffer());
}

/** Vectors; where not all bins fit into a file that can be opened, as many as do, and the picture says so. */
function svgFile(plans: ShownPlan[], options: PictureOptions): string {
  const { size, stage, camera } = framing(plans, options);
  // A vector of a bin thinner than a pixel is no picture: bins of a whole plan stay `wholeBin` high.
  const isWhole = options.camera === undefined;
  const zoom = isWhole ? zoomOfBin(stage, wholeBin) : camera.zoom;
  const scale = scaleOf(stage, zoom);
  return svgOfPlans(
    plans,
    { ...size, headHeight },
    stage,
    { ...camera, zoom },
    scale,
    options.colorBy,
    isWhole,
    options.wordsOf,
  );
}

function zoomOfBin(stage: Stage, height: number): number {
  let [low, high] = [0, maxZoom(stage)];
  for (let i = 0; i < 40; i++) {
    const middle = (low + high) / 2;
    if (scaleOf(stage, middle).perBin < height) low = middle;
    else high = middle;
  }
  return low;
}

const columns = ['strategy', 'bin', 'example', 'fromToken', 'tokens', 'position', 'supervised', 'file'];
const rowsAPart = 20_000;
/** Beyond this JSON is larger than the window can hold as one text. */
const mostJsonRows = 1_000_000;

async function jsonOfPlans(plans: ShownPlan[]): Promise<string> {
  const count = plans.reduce((sum, { scene }) => sum + scene.layout.length.length, 0);
  if (count > mostJsonRows)
    throw new Error(`JSON of ${integer(count)} tiles is more than a window can make: save it as CSV.`);
  const rows: ChartTable['rows'] = [];
  for await (const part of partsOf(plans)) rows.push(...part);
  return toJson({ columns, rows });
}

/** A part at a time, as bytes: of millions of tiles neither rows nor text would fit. */
async function csvOfPlans(plans: ShownPlan[]): Promise<Uint8Array<ArrayBuffer>> {
  const encoder = new TextEncoder();
  const parts = [encoder.encode(csvLines([columns]))];
  for await (const part of partsOf(plans)) parts.push(encoder.encode(csvLines(part)));
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** Every placement of the plans, some at a time; bins and examples count from 1, tokens and positions from 0. */
async function* partsOf(plans: ShownPlan[]): AsyncGenerator<ChartTable['rows']> {
  let part: ChartTable['rows'] = [];
  for (const { name, scene } of plans) {
    const { layout, examples, numBins } = scene;
    const files = examples?.sources.map(({ path }) => path.split(/[\\/]/).at(-1) ?? path);
    for (let bin = 0; bin < numBins; bin++) {
      for (let i = layout.binOffsets[bin] ?? 0; i < (layout.binOffsets[bin + 1] ?? 0); i++) {
        const { example, start, length, begin, supervised } = factsOf(scene, bin, i);
        const file = files?.[examples?.source[example] ?? 0];
        part.push([name, bin + 1, example + 1, start, length, begin, supervised ?? null, file ?? null]);
      }
      if (part.length < rowsAPart) continue;
      yield part;
      part = [];
      // The window goes on meanwhile.
      await new Promise((resolve) => setTimeout(resolve));
    }
  }
  if (part.length > 0) yield part;
}
