import { spawnSync } from 'node:child_process';
import { appEnvironment, electronProgram, expect, root, test } from './fixture.ts';

const start = (home: string, display: string | undefined) => {
  const { DISPLAY: _display, WAYLAND_DISPLAY: _wayland, ...env } = appEnvironment;
  return spawnSync(electronProgram(), [root, '--home', home], {
    env: { ...env, ...(display !== undefined && { DISPLAY: display }) },
    encoding: 'utf8',
    timeout: 30_000,
  });
};

test('with no display the program says so, names what works without one, and ends', ({ home }) => {
  const { status, stderr } = start(home, undefined);
  expect(status).toBe(1);
  expect(stderr).toContain('neither DISPLAY nor WAYLAND_DISPLAY is set');
  expect(stderr).toContain('npm start -- --terminal');
});

test('a display that nothing serves is named', ({ home }) => {
  const { status, stderr } = start(home, ':4242');
  expect(status).toBe(1);
  expect(stderr).toContain('DISPLAY is :4242, and nothing serves it');
});
