import { z } from 'zod';

/** What every failure looks like on every boundary: a stable code, what happened and to what, and the way out. */
export const errorSchema = z.object({ code: z.string(), message: z.string(), hint: z.string().optional() });
export type ErrorBody = z.infer<typeof errorSchema>;

export class TesseraError extends Error {
  override name = 'TesseraError';
  readonly code: string;
  readonly hint: string | undefined;
  constructor(code: string, message: string, hint?: string) {
    super(message);
    this.code = code;
    this.hint = hint;
  }
  toJSON(): ErrorBody {
    return toErrorBody(this);
  }
}

/** Anything thrown, as an error body; what is not ours keeps its message under the code `internal`. */
export function toErrorBody(error: unknown): ErrorBody {
  if (error instanceof TesseraError) {
    return {
      code: error.code,
      message: error.message,
      ...(error.hint !== undefined && { hint: error.hint }),
    };
  }
  if (error instanceof Error && error.name === 'AbortError')
    return { code: 'cancelled', message: 'cancelled' };
  return { code: 'internal', message: error instanceof Error ? error.message : String(error) };
}

export function fromErrorBody(body: ErrorBody): TesseraError {
  return new TesseraError(body.code, body.message, body.hint);
}
