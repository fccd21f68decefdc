import { toErrorBody, type ErrorBody } from '../main/contract/errors.ts';
import { forWindow } from '../main/contract/wayOut.ts';

/** The way out by the window's own means, where the core cannot know them. */
const ways: Record<string, string> = {
  disconnected: 'Start the core again, then try once more.',
  noRun: 'Runs lists what there is; removed ones stand under Deleted for a week.',
};

/** Anything thrown, as the window says it. */
export function errorInWindow(error: unknown): ErrorBody {
  const body = toErrorBody(error);
  const hint = ways[body.code] ?? body.hint;
  const message = forWindow(body.message);
  return { ...body, message, ...(hint !== undefined && { hint: forWindow(hint) }) };
}
