// Loads the application folder named on the command line, as Electron's own default app does, honouring -r. Electron
// holds its ready event back until this module has loaded, so the application is awaited here.
import { readFileSync } from 'node:fs';
import Module, { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { app } from 'electron';

const require = createRequire(import.meta.url);
const args = process.argv.slice(1);
let target;
for (let i = 0; i < args.length; i += 1) {
  if (args[i] === '-r' || args[i] === '--require') Module._preloadModules([args[(i += 1)]]);
  else if (!args[i].startsWith('-') && target === undefined) target = args[i];
}
if (target === undefined) {
  process.stderr.write('Name the application folder to start.\n');
  app.exit(1);
} else {
  const folder = path.resolve(target);
  const manifest = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  app.setName(manifest.productName || manifest.name);
  app.setVersion(manifest.version);
  app.setAppPath(folder);
  try {
    await import(pathToFileURL(require.resolve(path.join(folder, manifest.main || 'index.js'))).href);
  } catch (error) {
    process.stderr.write(`${error.stack}\n`);
    app.exit(1);
  }
}
