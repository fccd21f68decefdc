import { TesseraError } from '../contract/errors.ts';

/**
 * Why what somebody named could not be written there, and the way out.
 * @param what `file` or `folder`: what they may give another of
 */
export function notWritten(path: string, error: unknown, what: 'file' | 'folder'): TesseraError {
  const { code, message } = error as NodeJS.ErrnoException;
  const kept = what === 'folder' ? 'Nothing of it was left there. ' : '';
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    const hint = `${kept}Free some space there, or give a ${what} on another disk.`;
    return new TesseraError('diskFull', `${path} was not written: its disk is full`, hint);
  }
  // Without the name of what stands in for it until it is whole.
  const [why = message] = message.split(', ', 1);
  return new TesseraError('notWritable', `${path} cannot be written: ${why}`, `${kept}Give another ${what}.`);
}
