import { existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openHome } from '../../main/core/home.ts';
import { beginPartial, sweepPartials } from '../../main/core/partials.ts';

test('what a core was killed over is removed by the next one, and nothing else', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tessera-partials-'));
  const home = openHome(join(folder, 'home'));
  const killed = beginPartial(home, join(folder, 'model'));
  mkdirSync(killed.path);
  writeFileSync(join(killed.path, 'model.safetensors'), 'half');
  const finished = beginPartial(home, join(folder, 'other'));
  finished.done();
  // A note that somebody wrote by hand takes nothing along.
  const precious = join(folder, 'precious');
  mkdirSync(precious);
  writeFileSync(join(home.root, 'unfinished', 'abc'), precious);

  const said: string[] = [];
  sweepPartials(home, (line) => said.push(line));
  expect(existsSync(killed.path)).toBe(false);
  expect(existsSync(precious)).toBe(true);
  expect(said).toEqual([`${killed.path} was never finished and is removed`]);
  expect(readdirSync(join(home.root, 'unfinished'))).toEqual([]);
});
