/** Where the rows of a long list stand in an element that scrolls. */

export interface Sight {
  count: number;
  rowHeight: number;
  viewHeight: number;
  scrollTop: number;
}

/** Browsers draw nothing beyond some 33 million pixels; a longer list is scrolled in proportion. */
const mostPixels = 15_000_000;

/** Pixels of the list for one of the scroll bar's. */
function scaleOf({ count, rowHeight, viewHeight }: Sight): number {
  const whole = count * rowHeight;
  return whole <= mostPixels ? 1 : (whole - viewHeight) / (mostPixels - viewHeight);
}

/**
 * The rows that are in sight, `overscan` more on either side.
 * @returns height of what scrolls, and each row with its place in it, in pixels
 */
export function rowsInSight(at: Sight & { overscan: number }): {
  height: number;
  rows: { index: number; top: number }[];
} {
  const { count, rowHeight, viewHeight, scrollTop, overscan } = at;
  const listTop = scrollTop * scaleOf(at);
  const first = Math.max(0, Math.floor(listTop / rowHeight) - overscan);
  const end = Math.min(count, Math.ceil((listTop + viewHeight) / rowHeight) + overscan);
  const shift = listTop - scrollTop;
  return {
    height: Math.min(count * rowHeight, mostPixels),
    rows: Array.from({ length: Math.max(0, end - first) }, (_, i) => ({
      index: first + i,
      top: (first + i) * rowHeight - shift,
    })),
  };
}

/** How far to scroll so that a row is in sight: no further than needed, or to its middle. */
export function scrollFor(at: Sight, index: number, align: 'nearest' | 'center'): number {
  const { rowHeight, viewHeight, scrollTop } = at;
  const scale = scaleOf(at);
  const top = index * rowHeight;
  const listTop = scrollTop * scale;
  const isIn = top >= listTop && top + rowHeight <= listTop + viewHeight;
  if (align === 'nearest' && isIn) return scrollTop;
  if (align === 'nearest' && scale === 1) return top < listTop ? top : top + rowHeight - viewHeight;
  return Math.max(0, top - (viewHeight - rowHeight) / 2) / scale;
}
