import { expect, test } from 'vitest';
import { fontsConfig, systemConfig } from '../../../main/fonts/fontsConfig.ts';

test('the system’s configuration is the one that fontconfig would take, never our own', () => {
  const own = '/home/ada/.tessera/fonts.conf';
  expect(systemConfig({}, own)).toBe('/etc/fonts/fonts.conf');
  expect(systemConfig({ FONTCONFIG_FILE: '/app/fonts.conf' }, own)).toBe('/app/fonts.conf');
  expect(systemConfig({ FONTCONFIG_PATH: '/app/etc' }, own)).toBe('/app/etc/fonts.conf');
  // As a second start of the app, opened by the first, has it.
  expect(systemConfig({ FONTCONFIG_FILE: own }, own)).toBe('/etc/fonts/fonts.conf');
});

test('folders with any name are named rightly in it', () => {
  const text = fontsConfig('/etc/fonts/fonts.conf', '/opt/Q&A <new>/fonts', '/tmp/cache');
  expect(text).toContain('<dir>/opt/Q&amp;A &lt;new&gt;/fonts</dir>');
  expect(text).toContain('<include ignore_missing="yes">/etc/fonts/fonts.conf</include>');
});
