/** A bubble at (x, y) in pixels, with the words that shall stand beside it, if any. */
export interface Bubble {
  x: number;
  y: number;
  radius: number;
  text?: string;
}
export type LabelSide = 'right' | 'left' | 'top' | 'bottom';

interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

const characterPx = 6.2;
const linePx = 14;
const gapPx = 5;

/**
 * On which side of its bubble each text stands, so that it covers no bubble and no other text and stays in the picture;
 * undefined where there is no such side, or no text. Earlier bubbles choose first.
 */
export function placeLabels(
  bubbles: Bubble[],
  picture: { width: number; height: number },
): (LabelSide | undefined)[] {
  const taken = bubbles.map(({ x, y, radius }) => around(x, y, radius * 2, radius * 2));
  return bubbles.map((bubble, own) => {
    if (bubble.text === undefined) return undefined;
    const width = bubble.text.length * characterPx;
    const beside = bubble.radius + gapPx + width / 2;
    const above = bubble.radius + gapPx + linePx / 2;
    const choices: [LabelSide, Box][] = [
      ['right', around(bubble.x + beside, bubble.y, width, linePx)],
      ['left', around(bubble.x - beside, bubble.y, width, linePx)],
      ['top', around(bubble.x, bubble.y - above, width, linePx)],
      ['bottom', around(bubble.x, bubble.y + above, width, linePx)],
    ];
    const free = choices.find(
      ([, box]) =>
        box.left >= 0 &&
        box.right <= picture.width &&
        box.top >= 0 &&
        box.bottom <= picture.height &&
        !taken.some((other, i) => i !== own && overlap(box, other)),
    );
    if (free !== undefined) taken.push(free[1]);
    return free?.[0];
  });
}

function around(x: number, y: number, width: number, height: number): Box {
  return { left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 };
}

function overlap(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}
