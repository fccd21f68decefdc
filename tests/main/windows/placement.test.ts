import { expect, test } from 'vitest';
import { placeWindow, zoomThatFits } from '../../../main/windows/placement.ts';

const display = { x: 0, y: 0, width: 1920, height: 1080 };

test('a window opens where it was, and in the middle where that display is gone', () => {
  const place = { x: 40, y: 50, width: 1200, height: 800 };
  expect(placeWindow(place, [display])).toEqual(place);
  expect(placeWindow({ ...place, x: 4000 }, [display])).toEqual({ x: 240, y: 90, width: 1440, height: 900 });
  expect(placeWindow({ ...place, y: -40 }, [display])).toEqual({ x: 240, y: 90, width: 1440, height: 900 });
});

test('a window is never larger than its display', () => {
  const small = { x: 0, y: 0, width: 1024, height: 600 };
  expect(placeWindow(undefined, [small])).toEqual(small);
  expect(placeWindow({ x: 0, y: 0, width: 3000, height: 2000 }, [small])).toEqual(small);
});

test('a second display keeps its window', () => {
  const second = { x: 1920, y: 0, width: 1280, height: 1024 };
  const place = { x: 2000, y: 10, width: 1100, height: 700 };
  expect(placeWindow(place, [display, second])).toEqual(place);
});

test('the zoom that fits is the usual one where there is room, and smaller by the tighter side where there is none', () => {
  expect(zoomThatFits({ width: 1100, height: 700 })).toBe(1);
  expect(zoomThatFits({ width: 2560, height: 1440 })).toBe(1);
  expect(zoomThatFits({ width: 880, height: 700 })).toBeCloseTo(0.8);
  expect(zoomThatFits({ width: 800, height: 350 })).toBeCloseTo(0.5);
});
