// Loads the application folder named on the command line, as Electron's own default app does, honouring -r.
const { app } = require('electron');
const Module = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');

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
  const manifest = require(path.join(folder, 'package.json'));
  app.setName(manifest.productName || manifest.name);
  app.setVersion(manifest.version);
  app.setAppPath(folder);
  process.argv.splice(1, 1, folder);
  const entry = require.resolve(path.join(folder, manifest.main || 'index.js'));
  import(pathToFileURL(entry).href).catch((error) => {
    process.stderr.write(`${error.stack}\n`);
    app.exit(1);
  });
}
