import type { ReadOptions } from './options.ts';
import { formatBytes, type ReadItem } from './readers/rows.ts';
import { describeUnknown, detectFormat, type Detection } from './schema/detect.ts';
import type { RowFormat } from './schema/mapping.ts';
import { RowError, type Repairs } from './schema/messages.ts';
import { applyColumns, normaliseRow, type Example } from './schema/normalise.ts';
import { parseValue } from './schema/parse.ts';
import { describeType, mapStrings, pruneNulls } from './schema/values.ts';
import { Dict, type Value } from './template/values.ts';

export interface RecognisedRow {
  format: RowFormat;
  detection: Detection;
  example: Example;
}

/**
 * What a reader found, as an example: parsed, recognised, repaired.
 * @throws {RowError} with the reason for which the row is skipped
 */
export function toExample(item: ReadItem, options: ReadOptions, repairs: Repairs): RecognisedRow {
  if ('problem' in item) throw new RowError(item.problem);
  const value = 'json' in item ? parseItem(item.json) : item.value;
  if (!(value instanceof Dict)) throw new RowError(`${describeType(value)}, not an object with fields`);
  const checked = checkStrings(value, item, options.limits.maxFieldBytes, repairs);
  const whole = applyColumns(checked, options.mapping.columns);
  const row = 'nullsAdded' in item ? withoutNulls(whole, repairs) : whole;
  const detection = chosen(options.rowFormat) ?? detectFormat(row) ?? detectFormat(whole);
  if (detection === undefined) throw new RowError(describeUnknown(row));
  const { format } = detection;
  return { format, detection, example: normaliseRow(row, format, options.mapping, repairs) };
}

function chosen(format: RowFormat | undefined): Detection | undefined {
  return format && { format, confidence: 1, reason: 'chosen by hand' };
}

function parseItem(json: string): Value {
  try {
    return parseValue(json);
  } catch (error) {
    const { message } = error as Error;
    // A CR is white space to JSON: a file of the old Macintosh looks like one line of many values.
    const hint =
      /^Extra data/.test(message) && json.includes('\r')
        ? '; its lines end in CR alone: save it with LF'
        : '';
    throw new RowError(`no JSON: ${message}${hint}`);
  }
}

const surrogateEscape = /\\u[dD][89a-fA-F]/;

/** Refuses a text that is too large, and mends lone surrogates: only a JSON escape can make one. */
function checkStrings(row: Dict, item: ReadItem, maxFieldBytes: number, repairs: Repairs): Dict {
  const mayBeLarge = !('json' in item) || item.json.length * 3 > maxFieldBytes;
  const mayBeBroken = 'json' in item && surrogateEscape.test(item.json);
  if (!mayBeLarge && !mayBeBroken) return row;
  let numBroken = 0;
  const fields = Array.from(row.entries(), ([name, field]) => {
    const checked = mapStrings(field, (text) => {
      if (text.length * 3 > maxFieldBytes && Buffer.byteLength(text) > maxFieldBytes) {
        const limit = formatBytes(maxFieldBytes);
        throw new RowError(
          `a text of ${formatBytes(Buffer.byteLength(text))} in '${fieldName(name)}'; up to ${limit} is read`,
        );
      }
      if (!mayBeBroken || text.isWellFormed()) return text;
      numBroken += 1;
      return text.toWellFormed();
    });
    return [name, checked] as const;
  });
  if (numBroken === 0) return row;
  repairs('loneSurrogate');
  return Dict.of(fields);
}

function withoutNulls(row: Dict, repairs: Repairs): Dict {
  let numNested = 0;
  const fields = Array.from(row.entries())
    .filter(([, field]) => field !== null)
    .map(([name, field]) => [name, pruneNulls(field, () => (numNested += 1))] as const);
  if (numNested > 0) repairs('nullsPruned');
  return Dict.of(fields);
}

function fieldName(name: Value): string {
  return typeof name === 'string' ? name.slice(0, 60) : describeType(name);
}
