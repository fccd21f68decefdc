export interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

export const smallest = { width: 1100, height: 700 };
const usual = { width: 1440, height: 900 };
/** How much of a window's title must lie on a display for it to count as reachable, in pixels. */
const grip = { width: 120, height: 32 };

/**
 * Where a window opens: its remembered place where that is still on a display, else the middle of the first one.
 * Never larger than its display.
 * @param displays work areas, the primary one first
 */
export function placeWindow(remembered: Rectangle | undefined, displays: Rectangle[]): Rectangle {
  const home = displays.find((display) => remembered !== undefined && titleIsOn(remembered, display));
  if (remembered !== undefined && home !== undefined) {
    return {
      ...remembered,
      width: Math.min(remembered.width, home.width),
      height: Math.min(remembered.height, home.height),
    };
  }
  const display = displays[0] ?? { x: 0, y: 0, ...usual };
  const width = Math.min(usual.width, display.width);
  const height = Math.min(usual.height, display.height);
  return {
    x: display.x + Math.round((display.width - width) / 2),
    y: display.y + Math.round((display.height - height) / 2),
    width,
    height,
  };
}

function titleIsOn(window: Rectangle, display: Rectangle): boolean {
  const overlap =
    Math.min(window.x + window.width, display.x + display.width) - Math.max(window.x, display.x);
  return (
    overlap >= grip.width && window.y >= display.y && window.y + grip.height <= display.y + display.height
  );
}

/**
 * How much smaller than usual a page is drawn so that it fits: a display of fewer than 1100 × 700 points (a small one at
 * 200 %) shows everything a little smaller rather than half of it. 1 where there is room.
 * @param content the window's inside, in points
 */
export function zoomThatFits(content: { width: number; height: number }): number {
  return Math.min(1, content.width / smallest.width, content.height / smallest.height);
}
