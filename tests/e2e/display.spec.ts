import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
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

test('on a machine without a single font every word is there, in the fonts that come with the app', async ({
  home,
  open,
}) => {
  const none = join(home, 'no-fonts.conf');
  writeFileSync(none, `<fontconfig><cachedir>${home}/font-cache</cachedir></fontconfig>`);
  const { page } = await open({ env: { FONTCONFIG_FILE: none } });
  const button = page.getByRole('button', { name: 'Train the sample' });
  await expect(button).toBeVisible();
  await expect
    .poll(() => page.evaluate(() => [...document.fonts].filter(({ status }) => status === 'error').length))
    .toBe(0);
  // Without a font the words take no room: nothing but the icon would be left.
  const word = button.evaluate((element) => {
    const range = document.createRange();
    range.selectNodeContents(element.lastChild ?? element);
    return range.getBoundingClientRect().width;
  });
  expect(await word).toBeGreaterThan(60);
});
