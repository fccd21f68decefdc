import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { setHomePointer } from '../../../main/core/home.ts';
import { defaultHome } from '../../../main/core/homeFolder.ts';
import { openSettings } from '../../../main/core/settings/settings.ts';

const folder = () => mkdtempSync(join(tmpdir(), 'tessera-settings-'));

it('keeps what is set over a restart, and refuses what is no setting', () => {
  const file = join(folder(), 'settings.json');
  const first = openSettings(file, () => undefined);
  expect(first.get()).toMatchObject({ diskBudgetGib: 100, notifications: { ended: true, failed: true } });
  first.set({ diskBudgetGib: 12 });
  expect(openSettings(file, () => undefined).get().diskBudgetGib).toBe(12);
  expect(() => first.set({ diskBudgetGib: -1 })).toThrow('diskBudgetGib');
  expect(first.get().diskBudgetGib).toBe(12);
});

it('puts a file that cannot be read aside', () => {
  const file = join(folder(), 'settings.json');
  writeFileSync(file, '{"diskBudgetGib": ');
  const said: string[] = [];
  expect(openSettings(file, (line) => said.push(line)).get().diskBudgetGib).toBe(100);
  expect(said[0]).toContain(file);
  expect(existsSync(file)).toBe(false);
  expect(readFileSync(`${file}.unreadable`, 'utf8')).toBe('{"diskBudgetGib": ');
});

it('finds the home that was chosen, unless the environment names one or it is gone', () => {
  const data = folder();
  const env = { XDG_DATA_HOME: data, APPDATA: data, HOME: data };
  const usual = defaultHome(env);
  const chosen = join(folder(), 'elsewhere');
  mkdirSync(chosen);
  setHomePointer(chosen, env);
  expect(defaultHome(env)).toBe(chosen);
  expect(defaultHome({ ...env, TESSERA_HOME: '/named' })).toBe('/named');
  setHomePointer(undefined, env);
  expect(defaultHome(env)).toBe(usual);
  if (process.platform === 'linux') {
    for (const XDG_DATA_HOME of ['', 'relative'])
      expect(defaultHome({ XDG_DATA_HOME })).toBe(defaultHome({ XDG_DATA_HOME: undefined }));
  }
});
