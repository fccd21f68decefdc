// One text with the licence of everything that a packaged app carries.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SetupError } from '../setup/report.mjs';

const licenceFile = /^(licen[cs]e|copying|notice)/i;
/** Debian packages whose code the engine is built with. */
const engineLibraries = [
  'libspdlog-dev',
  'libfmt-dev',
  'libcli11-dev',
  'nlohmann-json3-dev',
  'libxxhash-dev',
];

/** @param {Map<string, {name: string, version: string, license?: string}>} folders */
export function writeLicences(folders, target) {
  const parts = [...folders]
    .sort(([, a], [, b]) => a.name.localeCompare(b.name))
    .map(([folder, { name, version, license }]) => {
      const texts = readdirSync(folder, { withFileTypes: true })
        .filter((entry) => entry.isFile() && licenceFile.test(entry.name))
        .map((entry) => readFileSync(join(folder, entry.name), 'utf8').trim());
      if (texts.length === 0 && license === undefined)
        throw new SetupError(`${name} ${version} names no licence`, 'It cannot be shipped.');
      return `${name} ${version}, ${license ?? 'see its text'}\n\n${texts.join('\n\n') || `(the package carries no text; its manifest says ${license})`}`;
    });
  const native = engineLibraries
    .map((name) => [name, join('/usr/share/doc', name, 'copyright')])
    .filter(([, file]) => existsSync(file))
    .map(([name, file]) => `${name}, part of the engine\n\n${readFileSync(file, 'utf8').trim()}`);
  const rule = `\n\n${'-'.repeat(80)}\n\n`;
  writeFileSync(target, `${[...parts, ...native].join(rule)}\n`);
  return parts.length + native.length;
}
