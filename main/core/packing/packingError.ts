/** Packing that cannot be done as asked; the message names the value, the hint the way out. */
export class PackingError extends Error {
  readonly code: string;
  readonly hint: string;
  constructor(code: string, message: string, hint: string) {
    super(message);
    this.name = 'PackingError';
    this.code = code;
    this.hint = hint;
  }
}
