/**
 * A failure of a template or of what it was given, told as Python tells it.
 * `pythonType` is the class that Python raises (`TemplateError` for raise_exception, `TypeError`, …);
 * `message` is that exception's text, verbatim for raise_exception.
 */
export class TemplateError extends Error {
  readonly pythonType: string;
  line: number | undefined;

  constructor(pythonType: string, message: string, line?: number) {
    super(message);
    this.name = 'TemplateError';
    this.pythonType = pythonType;
    this.line = line;
  }

  /** `Type: message`, the last line of a Python traceback. */
  describe(): string {
    return `${this.pythonType}: ${this.message}`;
  }
}

export function typeError(message: string): TemplateError {
  return new TemplateError('TypeError', message);
}

export function valueError(message: string): TemplateError {
  return new TemplateError('ValueError', message);
}
