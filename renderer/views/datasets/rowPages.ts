import { shallowRef, type ShallowRef } from 'vue';
import type { RowPreview } from '../../../main/contract/datasets.ts';

const pageRows = 50;
const keptPages = 100;

export interface RowPages {
  /** Grows with every page that arrives, for what draws the rows. */
  version: ShallowRef<number>;
  /** The row at a place of the list; undefined while it is on its way. */
  at: (position: number) => RowPreview | undefined;
  /** Fetches what is missing of `from` … `to` (exclusive). */
  want: (from: number, to: number) => void;
}

/**
 * Rows of a list of any length, fetched by pages as they come into sight; the pages last used are kept.
 * @param indexAt the example at a place of the list
 */
export function createRowPages(
  indexAt: (position: number) => number | undefined,
  fetchRows: (indices: number[]) => Promise<RowPreview[]>,
  onError: (error: unknown) => void,
): RowPages {
  const version = shallowRef(0);
  const pages = new Map<number, RowPreview[] | 'coming'>();

  async function load(page: number): Promise<void> {
    const indices = Array.from({ length: pageRows }, (_, i) => indexAt(page * pageRows + i)).filter(
      (index) => index !== undefined,
    );
    if (indices.length === 0) return;
    pages.set(page, 'coming');
    try {
      pages.set(page, await fetchRows(indices));
    } catch (error) {
      pages.delete(page);
      onError(error);
      return;
    }
    while (pages.size > keptPages) pages.delete(pages.keys().next().value ?? -1);
    version.value += 1;
  }

  return {
    version,
    at: (position) => {
      const page = pages.get(Math.floor(position / pageRows));
      return page === undefined || page === 'coming' ? undefined : page[position % pageRows];
    },
    want: (from, to) => {
      for (let page = Math.floor(from / pageRows); page * pageRows < to; page++) {
        const known = pages.get(page);
        if (known === undefined) void load(page);
        else {
          pages.delete(page);
          pages.set(page, known);
        }
      }
    },
  };
}
