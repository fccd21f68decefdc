import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { app } from 'electron';
import { fontsConfig, systemConfig } from './fontsConfig.ts';

/**
 * On a Linux without a single font Chromium cannot even load those that come with the page: the window would hold no
 * letter. So one font is always among the system's, of a family that no system prefers to its own.
 */
export function setupFonts(): void {
  if (process.platform !== 'linux') return;
  const folder = app.isPackaged
    ? join(process.resourcesPath, 'fonts')
    : join(app.getAppPath(), 'node_modules/@expo-google-fonts/inter/400Regular');
  const own = join(app.getPath('userData'), 'fonts.conf');
  try {
    writeFileSync(
      own,
      fontsConfig(systemConfig(process.env, own), folder, join(app.getPath('userData'), 'fonts')),
    );
    // Read by fontconfig, which comes to life with the first window.
    process.env.FONTCONFIG_FILE = own;
  } catch (error) {
    process.stderr.write(`[main ${process.pid}] the shipped font is not offered: ${String(error)}\n`);
  }
}
