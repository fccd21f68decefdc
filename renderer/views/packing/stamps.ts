/** A text as a canvas draws it: how much of each pixel its ink covers, in device pixels. */
export interface Stamp {
  /** [height × width], 0 to 255. */
  coverage: Uint8Array;
  width: number;
  height: number;
  /** From the text's start and its middle line to the first pixel. */
  left: number;
  top: number;
  /** CSS pixels from its start to where the next text would begin. */
  advance: number;
}

/** About 6 MB of them. */
const mostStamps = 8000;
const sheet = { width: 480, height: 24 };
const margin = 4;

/**
 * Texts drawn once and kept: setting a line of text costs as much as copying ten thousand pixels, and while a picture
 * moves the same few hundred texts stand in every frame of it.
 */
export class Stamps {
  readonly #density: number;
  readonly #kinds = new Map<string, Kind>();
  #count = 0;
  #isLate = false;
  /** So many texts are drawn yet, then those that are not known are left out. */
  allowance = Infinity;

  constructor(density: number) {
    this.#density = density;
    // Drawn in the font that stood in until theirs was there.
    document.fonts.addEventListener('loadingdone', () => {
      this.#forget();
    });
  }

  /** Whether a text was left out since this was last asked. */
  takeLate(): boolean {
    const was = this.#isLate;
    this.#isLate = false;
    return was;
  }

  /** `font` and `ink` as a canvas takes them; undefined where the allowance is used up. */
  of(text: string, font: string, ink: string): Stamp | undefined {
    const name = `${font}|${ink}`;
    let kind = this.#kinds.get(name);
    if (kind === undefined) this.#kinds.set(name, (kind = newKind(font, ink, this.#density)));
    const known = kind.stamps.get(text);
    if (known) return known;
    if (this.allowance-- <= 0) {
      this.#isLate = true;
      return undefined;
    }
    if (this.#count >= mostStamps) this.#forget();
    const stamp = drawn(kind.context, text, this.#density);
    kind.stamps.set(text, stamp);
    this.#count++;
    return stamp;
  }

  #forget(): void {
    for (const { stamps } of this.#kinds.values()) stamps.clear();
    this.#count = 0;
  }
}

/** Texts of one font and ink, on a canvas of their own: a font is dear to set. */
interface Kind {
  context: OffscreenCanvasRenderingContext2D;
  stamps: Map<string, Stamp>;
}

function newKind(font: string, ink: string, density: number): Kind {
  const canvas = new OffscreenCanvas(Math.ceil(sheet.width * density), Math.ceil(sheet.height * density));
  const context = canvas.getContext('2d', { willReadFrequently: true });
  if (context === null) throw new Error('this window has no canvas');
  context.setTransform(density, 0, 0, density, 0, 0);
  context.font = font;
  context.fillStyle = ink;
  context.textBaseline = 'middle';
  return { context, stamps: new Map() };
}

function drawn(context: OffscreenCanvasRenderingContext2D, text: string, density: number): Stamp {
  const advance = context.measureText(text).width;
  const width = Math.min(sheet.width, Math.ceil(advance) + 2 * margin);
  context.clearRect(0, 0, width, sheet.height);
  context.fillText(text, margin, sheet.height / 2);
  const size = { width: Math.ceil(width * density), height: Math.ceil(sheet.height * density) };
  const { data } = context.getImageData(0, 0, size.width, size.height);
  return { ...trimmed(data, size.width, size.height, density), advance };
}

/** The rows and columns that hold ink. */
function trimmed(
  data: Uint8ClampedArray,
  width: number,
  height: number,
  density: number,
): Omit<Stamp, 'advance'> {
  let [left, top, right, bottom] = [width, height, 0, 0];
  for (let at = 3, x = 0, y = 0; at < data.length; at += 4) {
    if (data[at] !== 0) {
      if (x < left) left = x;
      if (x >= right) right = x + 1;
      if (y < top) top = y;
      bottom = y + 1;
    }
    if (++x === width) [x, y] = [0, y + 1];
  }
  const own = { width: Math.max(0, right - left), height: Math.max(0, bottom - top) };
  const coverage = new Uint8Array(own.width * own.height);
  for (let y = 0; y < own.height; y++) {
    for (let x = 0; x < own.width; x++)
      coverage[y * own.width + x] = data[4 * ((top + y) * width + left + x) + 3] ?? 0;
  }
  return {
    coverage,
    ...own,
    left: left - Math.round(margin * density),
    top: top - Math.round((sheet.height / 2) * density),
  };
}

const byDensity = new Map<number, Stamps>();

/** The texts of all pictures of a density. */
export function stampsOf(density: number): Stamps {
  let known = byDensity.get(density);
  if (known === undefined) byDensity.set(density, (known = new Stamps(density)));
  return known;
}
