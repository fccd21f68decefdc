import { mkdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { toErrorBody } from '../../main/contract/errors.ts';
import { describeFileError } from '../../main/core/datasets/readers/files.ts';

/** What the system says of a folder that nobody may make, root neither. */
function refused(): unknown {
  try {
    mkdirSync('/sys/tessera');
    throw new Error('it was made');
  } catch (error) {
    return error;
  }
}

test.runIf(process.platform === 'linux')('what the system forbids is named, with the way out', () => {
  expect(toErrorBody(refused())).toMatchObject({
    code: 'noPermission',
    message: expect.stringMatching(/forbids it: \/sys\/tessera \(E[A-Z]+\)$/) as string,
    hint: expect.stringContaining('--home') as string,
  });
});

test('of a file it is said whether it may not be read or not be written', () => {
  const denied = (syscall: string) => Object.assign(new Error('EACCES'), { code: 'EACCES', syscall });
  expect(describeFileError(denied('open'), '/a').message).toBe('no permission to read /a');
  expect(describeFileError(denied('mkdir'), '/a').message).toBe('no permission to write /a');
});
