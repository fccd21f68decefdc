import { join } from 'node:path';
import { expect, test } from 'vitest';
import { pathsFromArguments } from '../../../main/instance/pathsFromArguments.ts';

const here = import.meta.dirname;
const file = join(here, 'pathsFromArguments.test.ts');

test('files are found among options, relative to where the program was started', () => {
  const argv = ['electron', '.', '--home', here, '--flag', 'pathsFromArguments.test.ts', 'none.jsonl'];
  expect(pathsFromArguments(argv, here, here)).toEqual([file]);
  expect(pathsFromArguments(['tessera', file, `--home=${here}`], '/', '/opt/tessera/app.asar')).toEqual([
    file,
  ]);
  expect(pathsFromArguments(['electron', here], '/', here)).toEqual([]);
});
