import { summaryColumns, type ListRow } from '../../../db/queries/runs.ts';
import {
  flagColumn,
  numberColumn,
  textColumn,
  wordColumn,
  type PackedColumn,
  type PackedRows,
} from '../../contract/rows.ts';
import { summaryFields } from '../../contract/runs.ts';

const places = new Map<string, number>([...summaryColumns, 'tags'].map((name, place) => [name, place]));
const placeOf = (name: string) => places.get(name) ?? -1;
const readList = (list: string) => JSON.parse(list) as string[];

/** The rows of a list (`summaryColumns`, then the tags) as the columns that travel. */
export function packList(rows: ListRow[]): PackedRows {
  const columns = summaryFields.map(({ name, kind }): PackedColumn => {
    if (name === 'archived') return flagColumn(name, rows, placeOf('archivedAtMs'));
    const place = placeOf(name);
    if (name === 'tags') return wordColumn(name, rows, place, readList);
    if (kind === 'numbers') return numberColumn(name, rows, place);
    return kind === 'texts' ? textColumn(name, rows, place) : wordColumn(name, rows, place);
  });
  return { count: rows.length, columns };
}
