import { z } from 'zod';

/** What every failure looks like on every boundary: a stable code, what happened and to what, and the way out. */
export const errorSchema = z.object({
  code: z.string(),
  message: z.string(),
  hint: z.string().optional(),
  /** What a program may want to know besides: `skipped` rows of an import that kept none. */
  details: z.record(z.string(), z.unknown()).optional(),
});
export type ErrorBody = z.infer<typeof errorSchema>;

export class TesseraError extends Error {
  override name = 'TesseraError';
  readonly code: string;
  readonly hint: string | undefined;
  readonly details: ErrorBody['details'];
  constructor(code: string, message: string, hint?: string, details?: ErrorBody['details']) {
    super(message);
    this.code = code;
    this.hint = hint;
    this.details = details;
  }
  toJSON(): ErrorBody {
    return toErrorBody(this);
  }
}

/** The way out where two ends do not understand one another. */
export const otherVersion =
  'Another version of Tessera works in this home. Close every window and command of it, then start this one again: it starts its own core.';

/** Anything thrown, as an error body; what is not ours keeps its message under the code `internal`. */
export function toErrorBody(error: unknown): ErrorBody {
  if (error instanceof TesseraError) {
    return {
      code: error.code,
      message: error.message,
      ...(error.hint !== undefined && { hint: error.hint }),
      ...(error.details !== undefined && { details: error.details }),
    };
  }
  if (error instanceof Error && error.name === 'AbortError')
    return { code: 'cancelled', message: 'cancelled' };
  return (
    schemaError(error) ??
    storeError(error) ?? { code: 'internal', message: error instanceof Error ? error.message : String(error) }
  );
}

/** What a schema (zod) refused: the field and what is wrong with it, where its own message is a list in JSON. */
function schemaError(error: unknown): ErrorBody | undefined {
  const { issues } = (error ?? {}) as { issues?: unknown };
  if (!(error instanceof Error) || !Array.isArray(issues)) return undefined;
  const list = issues as { path?: PropertyKey[]; message?: string }[];
  const words = list.slice(0, 3).map(({ path = [], message = 'invalid' }) => {
    const field = path.map(String).join('.');
    return field === '' ? message : `${field}: ${message}`;
  });
  const more = list.length > words.length ? `; and ${String(list.length - words.length)} more` : '';
  return { code: 'badValue', message: words.join('; ') + more };
}

/** What keeps a history that was whole at the start from being read or written now. */
function storeError(error: unknown): ErrorBody | undefined {
  const { code, message = '' } = (error ?? {}) as { code?: unknown; message?: string };
  if (typeof code !== 'string') return undefined;
  if (/^SQLITE_(BUSY|LOCKED)/.test(code))
    return {
      code: 'historyLocked',
      message: `another program holds the history (${message}); nothing was changed`,
      hint: 'Close that program (a database browser, a backup), then try again. Runs go on; their steps wait in memory.',
    };
  if (/^SQLITE_FULL/.test(code) || code === 'ENOSPC')
    return {
      code: 'diskFull',
      message: `the disk is full (${message}); nothing was changed`,
      hint: 'Free some space where the home folder lies, then try again.',
    };
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') {
    const { path } = error as { path?: unknown };
    return {
      code: 'noPermission',
      message: `the system forbids it: ${typeof path === 'string' ? path : message} (${code})`,
      hint: 'Mend its permissions; a home that may not be written can be another (--home DIR, TESSERA_HOME).',
    };
  }
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(code))
    return {
      code: 'historyDamaged',
      message: `the history is damaged (${message})`,
      hint: 'Close Tessera and open it again: it shows what can be read, and offers to mend it.',
    };
  return undefined;
}

export function fromErrorBody(body: ErrorBody): TesseraError {
  return new TesseraError(body.code, body.message, body.hint, body.details);
}
