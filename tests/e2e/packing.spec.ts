import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ElectronApplication, Locator, Page } from '@playwright/test';
import type { PackedExamples, PackingLayout } from '../../main/contract/packing.ts';
import { scaleOf, zoomFor, type Stage } from '../../renderer/views/packing/camera.ts';
import { plotOf } from '../../renderer/views/packing/paint.ts';
import { factsOf, flipsOf, sceneOf, type Scene } from '../../renderer/views/packing/scene.ts';
import { coreOf, expect, sample, show, test, untilReady } from './fixture.ts';

const budget = 1024;

/** The next file that the window saves goes to `path`. */
async function saveTo(app: ElectronApplication, path: string): Promise<void> {
  await app.evaluate(({ dialog }, filePath) => {
    dialog.showSaveDialog = () => Promise.resolve({ canceled: false, filePath });
  }, path);
}

async function savedAs(app: ElectronApplication, page: Page, path: string, kind: string): Promise<Buffer> {
  await saveTo(app, path);
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('menuitem', { name: kind }).click();
  await expect.poll(() => existsSync(path) && readFileSync(path).length > 0, { timeout: 30_000 }).toBe(true);
  await expect(page.getByText(path).first()).toBeVisible();
  return readFileSync(path);
}

async function stageOf(canvas: Locator, numBins: number): Promise<Stage & { x: number; y: number }> {
  const box = (await canvas.boundingBox())!;
  const plot = plotOf(box);
  const { width, height } = plot;
  return { width, height, budget, numBins, x: box.x + plot.x, y: box.y + plot.y };
}

/** The colour of a pixel of a canvas, at a point of the window, as `#rrggbb`. */
async function pixelAt(canvas: Locator, x: number, y: number): Promise<string> {
  return canvas.evaluate(
    (element, at) => {
      const picture = element as HTMLCanvasElement;
      const { left, top } = picture.getBoundingClientRect();
      const [px, py] = [(at.x - left) * devicePixelRatio, (at.y - top) * devicePixelRatio];
      const { data } = picture.getContext('2d')!.getImageData(Math.round(px), Math.round(py), 1, 1);
      return `#${[...data.subarray(0, 3)].map((value) => value.toString(16).padStart(2, '0')).join('')}`;
    },
    { x, y },
  );
}

/** Whether a text stands in the picture, pixel by pixel as the browser itself draws it, with room around it. */
async function holdsText(canvas: Locator, text: string, size: string): Promise<boolean> {
  return canvas.evaluate(
    (element, wanted) => {
      const picture = element as HTMLCanvasElement;
      const family = getComputedStyle(document.documentElement).getPropertyValue('--font-ui');
      const [width, height, margin] = [24 + 8 * wanted.text.length, 24, 6];
      const own = new OffscreenCanvas(width, height).getContext('2d')!;
      Object.assign(own, { font: `${wanted.size} ${family}`, textBaseline: 'middle' });
      own.fillText(wanted.text, margin, height / 2);
      const ink: { x: number; y: number; share: number }[] = [];
      const { data: drawn } = own.getImageData(0, 0, width, height);
      const right = margin + Math.ceil(own.measureText(wanted.text).width) + 2;
      for (let y = 6; y < height - 6; y++)
        for (let x = margin - 2; x < right; x++)
          ink.push({ x, y, share: drawn[4 * (y * width + x) + 3]! / 255 });
      const strongest = ink.reduce((most, each) => (each.share > most.share ? each : most));
      const { data } = picture.getContext('2d')!.getImageData(0, 0, picture.width, picture.height);
      const green = (x: number, y: number) => data[4 * (y * picture.width + x) + 1]!;
      for (let y = 0; y + height < picture.height; y++)
        for (let x = 0; x + right < picture.width; x++) {
          const ground = green(x + margin - 2, y + 6);
          const full = (green(x + strongest.x, y + strongest.y) - ground) / strongest.share;
          if (Math.abs(full) < 40) continue;
          if (ink.every((at) => Math.abs((green(x + at.x, y + at.y) - ground) / full - at.share) < 0.12))
            return true;
        }
      return false;
    },
    { text, size },
  );
}

const colorOf = (page: Page, token: string) =>
  page.evaluate(
    (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim(),
    token,
  );

/** A tile with a supervised stretch of some pixels, and that stretch's middle. */
function tileWithAnswer(scene: Scene, fromBin: number) {
  for (let bin = fromBin; bin < scene.numBins; bin++) {
    for (let i = scene.layout.binOffsets[bin]!; i < scene.layout.binOffsets[bin + 1]!; i++) {
      const flips: number[] = [];
      const count = flipsOf(scene, i, flips);
      const end = scene.begin[i]! + scene.layout.length[i]!;
      const to = count > 1 ? flips[1]! : end;
      if (count > 0 && to - flips[0]! > 40)
        return { ...factsOf(scene, bin, i), answer: (flips[0]! + to) / 2 };
    }
  }
  throw new Error('no tile has a long answer');
}

test('packing: bins drawn by their masks, the card, zoom to tokens, keys, the example, files', async ({
  home,
  open,
}) => {
  test.setTimeout(180_000);
  const { app, page } = await open();
  await untilReady(page);
  const core = await coreOf(home);
  const { dataset } = await core.call('datasets:import', { paths: [sample], name: 'workshop chats' });
  const plan = async (strategy: 'padded' | 'best-fit') =>
    (await core.call('packing:plan', {
      source: { dataset: dataset.id },
      options: { budget, strategy },
      withLayout: true,
    })) as { layout: PackingLayout };
  const examples: PackedExamples = await core.call('packing:examples', { dataset: dataset.id });
  const [padded, packed] = [await plan('padded'), await plan('best-fit')];
  const scene = sceneOf(packed.layout, budget, examples, 'length');
  const numBins = padded.layout.binOffsets.length - 1;

  await show(page, `/packing?dataset=${dataset.id}&budget=${String(budget)}`);
  const canvas = page.getByRole('application', { name: /Best fit, shuffled/ });
  await expect(canvas).toHaveAttribute('data-tiles', String(packed.layout.length.length));
  await expect(page.getByRole('application', { name: /Padded/ })).toHaveAttribute(
    'data-last-bin',
    String(numBins),
  );
  // The table behind the picture begins with the plan's first tile.
  const first = factsOf(scene, 0, 0);
  await expect(
    page.getByRole('table', { name: 'Best fit, shuffled: tiles in sight' }).locator('tbody tr').first(),
  ).toHaveText(
    [first.bin + 1, first.example + 1, first.begin, first.length, first.supervised].map(String).join(''),
  );

  // Tiles: an answer has its colour, what stands before it is hatched.
  await page.getByRole('radio', { name: 'Tiles' }).click();
  const stage = await stageOf(canvas, numBins);
  const zoom = zoomFor(stage, 'tiles');
  const { perBin, perPosition } = scaleOf(stage, zoom);
  // Zoomed about the middle of the height.
  const fit = scaleOf(stage, 0).perBin;
  const top = Math.max(0, stage.height / 2 / fit - stage.height / 2 / perBin);
  const inSight = tileWithAnswer(scene, Math.ceil(top) + 2);
  const x = stage.x + inSight.answer * perPosition;
  const y = stage.y + (inSight.bin - top + 0.4) * perBin;
  await expect
    .poll(() => pixelAt(canvas, x, y))
    .toBe(await colorOf(page, `seq-${String(scene.color[inSight.placement])}`));
  const context = new Set<string>();
  const startOfTile = stage.x + inSight.begin * perPosition + 1;
  for (let i = 0; i < 4; i++) context.add(await pixelAt(canvas, startOfTile + i, y));
  expect(context.size, 'context is hatched').toBeGreaterThan(1);

  // The card.
  await page.mouse.move(x, y);
  const card = page.getByRole('tooltip');
  await expect(card).toContainText(`Example ${inSight.example + 1}`);
  await expect(card).toContainText(`${inSight.length} tokens`);
  const share = (100 * inSight.supervised!) / inSight.length;
  await expect(card).toContainText(`${inSight.supervised} · ${share.toFixed(1)} %`);
  await expect(card).toContainText(`${inSight.begin} to ${inSight.begin + inSight.length - 1}`);
  const { rows } = await core.call('datasets:previews', { id: dataset.id, indices: [inSight.example] });
  await expect(card).toContainText(rows[0]!.prompt.trim().split(/\s+/).slice(0, 3).join(' '));

  // The wheel zooms where the pointer is, down to the token that it was on.
  for (let i = 0; i < 40; i++) await page.mouse.wheel(0, -100);
  await expect(canvas).toHaveAttribute('data-level', 'tokens');
  await expect(card).toContainText('Position id');
  const token = Number(/Position id(\d+)/.exec((await card.textContent())!)![1]);
  // Words are copied into the picture from stamps; what they give is what the browser would draw.
  await expect.poll(() => holdsText(canvas, String(token + 1), '10px')).toBe(true);
  expect(await holdsText(canvas, '7777777', '10px')).toBe(false);
  const words = await core.call('datasets:rows', { id: dataset.id, from: inSight.example, count: 1 });
  const shown = words.rows[0]!.tokens[token]!;
  expect(Math.abs(token - (inSight.answer - inSight.begin))).toBeLessThan(3);
  await expect(card).toContainText(`id ${shown.id}`);
  await expect(card).toContainText(shown.supervised ? 'its prediction counts' : 'read, not learned');
  const near = (await savedAs(app, page, join(home, 'near.svg'), 'SVG of what is shown')).toString();
  const drawn = await page.evaluate((text) => {
    const picture = new DOMParser().parseFromString(text, 'image/svg+xml');
    const texts = (kind: string) =>
      [...picture.querySelectorAll(`text.${kind}`)].map((each) => each.textContent);
    return {
      error: picture.querySelector('parsererror')?.textContent,
      labels: texts('tl'),
      words: texts('tw'),
    };
  }, near);
  expect(drawn.error).toBeUndefined();
  expect(drawn.labels.join('\n')).toContain(`Example ${inSight.example + 1} ${inSight.length} tokens`);
  expect(drawn.words.length).toBeGreaterThan(5);

  // Keys: back out, to the end, to the tile before, and into its example.
  await canvas.focus();
  await page.keyboard.press('Escape');
  await expect(canvas).toHaveAttribute('data-level', 'tiles');
  await page.keyboard.press('End');
  await expect(canvas).toHaveAttribute('data-last-bin', String(packed.layout.binOffsets.length - 1));
  await page.keyboard.press('Home');
  await expect(canvas).toHaveAttribute('data-first-bin', '0');
  await page.keyboard.press('ArrowRight');
  const second = factsOf(scene, 0, 1);
  await expect(card).toContainText(`Example ${second.example + 1}`);

  await page.keyboard.press('Enter');
  const hash = () => page.evaluate(() => location.hash);
  await expect.poll(hash).toBe(`#/datasets/${dataset.id}/tokens?row=${second.example + 1}`);
  await show(page, `/packing?dataset=${dataset.id}&budget=${String(budget)}`);
  await expect(canvas).toHaveAttribute('data-tiles', String(packed.layout.length.length));

  // Files.
  const png = await savedAs(app, page, join(home, 'shown.png'), 'PNG of what is shown');
  expect(png.subarray(1, 4).toString()).toBe('PNG');
  expect(png.readUInt32BE(16)).toBeGreaterThan(1000);
  const svg = (await savedAs(app, page, join(home, 'all.svg'), 'SVG of all bins')).toString();
  const paths = svg.match(/ d="([^"]+)"/g)!.join('');
  const numShapes = paths.match(/M/g)!.length;
  expect(numShapes).toBeGreaterThan(packed.layout.length.length + padded.layout.length.length);
  expect(svg).toContain('<pattern id="p"');
  expect(svg).not.toContain('NaN');
  const csv = (await savedAs(app, page, join(home, 'tiles.csv'), 'CSV of every tile')).toString();
  expect(csv.trim().split('\r\n')).toHaveLength(
    1 + packed.layout.length.length + padded.layout.length.length,
  );
  expect(csv).toContain(`best-fit,1,${first.example + 1},${first.start},${first.length},${first.begin},`);

  // Budgets: a cell chooses, and the picture is that plan's.
  await page.getByRole('button', { name: 'Compare budgets' }).click();
  const cell = await core.call('packing:plan', {
    source: { dataset: dataset.id },
    options: { budget: 512, strategy: 'bfd' },
  });
  const table = page.getByRole('region', { name: 'Several budgets' });
  await table.getByRole('radio', { name: 'Bins' }).click();
  await table
    .getByRole('row', { name: /^512/ })
    .getByRole('button', { name: String(cell.summary.bins), exact: true })
    .nth(0)
    .click();
  await expect.poll(hash).toContain('budget=512');
  await table.getByRole('button', { name: 'Back to the bins' }).click();
  core.close();

  // A click opens the example where its tokens are.
  await show(page, `/packing?dataset=${dataset.id}&budget=${String(budget)}&zoom=${zoom.toFixed(3)}`);
  // The plan is there, and as near as the address says.
  await expect(canvas).toHaveAccessibleName(`Best fit, shuffled: ${String(scene.numBins)} bins`);
  await expect(canvas).toHaveAttribute('data-last-bin', String(Math.ceil(stage.height / perBin)));
  const middle = first.begin + first.length / 2;
  await page.mouse.click(stage.x + middle * perPosition, stage.y + 0.4 * perBin);
  await expect.poll(hash).toBe(`#/datasets/${dataset.id}/tokens?row=${first.example + 1}`);
});
