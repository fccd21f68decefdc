import { toErrorBody, type ErrorBody } from '../main/contract/errors.ts';

/** The way out by the window's own means, where the core's words (which a terminal shows too) name a command. */
const ways: Record<string, string> = {
  disconnected: 'Start the core again, then try once more.',
  noDataset: 'Datasets lists what there is.',
  noRun: 'Runs lists what there is; removed ones stand under Deleted for a week.',
  runPaused: 'Resume it first, with the button at the top.',
};

/** A reason without what only a command line has: `(in Columns, or --column text=NAME)`. */
export const withoutOptions = (text: string) => text.replaceAll(/,? or (?:with )?--[^)]*(?=\))/g, '');

/** Anything thrown, as the window says it. */
export function errorInWindow(error: unknown): ErrorBody {
  const body = toErrorBody(error);
  const hint = ways[body.code] ?? body.hint;
  const message = withoutOptions(body.message);
  return { ...body, message, ...(hint !== undefined && { hint: withoutOptions(hint) }) };
}
