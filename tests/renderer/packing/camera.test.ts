import { expect, test } from 'vitest';
import {
  binsInSight,
  clampCamera,
  levelOf,
  maxZoom,
  panBy,
  reveal,
  scaleOf,
  spotAt,
  zoomAt,
  zoomFor,
  type Stage,
} from '../../../renderer/views/packing/camera.ts';

const stage: Stage = { width: 600, height: 500, budget: 8192, numBins: 20_000 };
const small: Stage = { width: 600, height: 500, budget: 512, numBins: 5 };

test('zoom runs from all bins over tiles to tokens that can be read, without a jump', () => {
  expect(scaleOf(stage, 0)).toEqual({ perPosition: 600 / 8192, perBin: 500 / 20_000 });
  expect(levelOf(scaleOf(stage, 0))).toBe('texture');
  expect(levelOf(scaleOf(stage, zoomFor(stage, 'tiles')))).toBe('tiles');
  const near = scaleOf(stage, maxZoom(stage));
  expect(levelOf(near)).toBe('tokens');
  expect(near.perPosition).toBeGreaterThan(60);
  let before = scaleOf(stage, 0);
  for (let zoom = 0; zoom <= maxZoom(stage); zoom += 1 / 64) {
    const now = scaleOf(stage, zoom);
    expect(now.perBin).toBeGreaterThanOrEqual(before.perBin);
    expect(now.perPosition).toBeGreaterThanOrEqual(before.perPosition);
    expect(now.perBin / before.perBin).toBeLessThan(1.05);
    expect(now.perPosition / before.perPosition).toBeLessThan(1.05);
    before = now;
  }
});

test('few bins are not blown up: they keep the height of tiles', () => {
  expect(scaleOf(small, 0).perBin).toBeLessThan(20);
  expect(binsInSight(small, { zoom: 0, left: 0, top: 0 })).toEqual({ from: 0, to: 5 });
});

test('what lies under the pointer stays there while zooming in and out again', () => {
  const start = { zoom: 9, left: 0, top: 9000 };
  const [x, y] = [300, 250];
  const spot = spotAt(stage, start, x, y);
  let camera = start;
  for (let i = 0; i < 20; i++) {
    camera = zoomAt(stage, camera, 0.5, x, y);
    const now = spotAt(stage, camera, x, y);
    expect(now.bin).toBe(spot.bin);
    expect(Math.abs(now.position - spot.position)).toBeLessThanOrEqual(1);
  }
  for (let i = 0; i < 40; i++) camera = zoomAt(stage, camera, -0.5, x, y);
  expect(camera).toEqual({ zoom: 0, left: 0, top: 0 });
});

test('no camera leaves the bins', () => {
  const far = panBy(stage, { zoom: 8, left: 0, top: 0 }, 1e9, 1e9);
  const { perBin } = scaleOf(stage, 8);
  expect(far.top).toBeCloseTo(stage.numBins - stage.height / perBin);
  expect(far.left).toBe(0);
  expect(clampCamera(small, { zoom: 99, left: -5, top: 99 })).toMatchObject({
    zoom: maxZoom(small),
    left: 0,
  });
});

test('a place is brought into sight by moving as little as needed', () => {
  const camera = { zoom: maxZoom(stage), left: 100, top: 50 };
  const { from, to } = binsInSight(stage, camera);
  expect(reveal(stage, camera, { bin: 52, position: 103 })).toEqual(camera);
  const moved = reveal(stage, camera, { bin: to + 30, position: 103 });
  expect(binsInSight(stage, moved).to).toBeGreaterThanOrEqual(to + 31);
  expect(reveal(stage, camera, { bin: 3, position: 103 }).top).toBe(3);
  expect(from).toBe(50);
});
