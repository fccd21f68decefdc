// Which installed packages a part of the program needs, found from its imports, and their copies without what other
// platforms or builds would want.
import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, extname, join, relative } from 'node:path';
import { root } from '../setup/paths.mjs';

const imports = /(?:from|import)\s*\(?\s*'((?:@[^/']+\/)?[a-z][^/']*)[^']*'/g;

/** Names of the packages that the sources under `folders` import. */
export function importedPackages(folders) {
  const names = new Set();
  for (const folder of folders) {
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || !/\.(ts|vue|mjs)$/.test(entry.name)) continue;
      const text = readFileSync(join(entry.parentPath, entry.name), 'utf8');
      for (const [, name] of text.matchAll(imports)) if (!name.startsWith('node:')) names.add(name);
    }
  }
  return [...names].filter((name) => existsSync(join(root, 'node_modules', name, 'package.json')));
}

/** The folders of the named packages and of all that they depend on, as Node would resolve them. */
export function packageFolders(names) {
  const folders = new Map();
  const visit = (name, from) => {
    const folder = resolveFrom(name, from);
    if (folder === undefined || folders.has(folder)) return;
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    folders.set(folder, manifest);
    for (const dependency of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }))
      visit(dependency, folder);
  };
  for (const name of names) visit(name, root);
  return folders;
}

function resolveFrom(name, from) {
  for (let folder = from; folder.startsWith(root); folder = join(folder, '..')) {
    const candidate = join(folder, 'node_modules', name);
    if (existsSync(join(candidate, 'package.json'))) return candidate;
  }
  return undefined;
}

// Sources of native addons, and what only a build of them or an editor reads.
const unwanted = {
  'better-sqlite3': ['deps', 'src', 'build', 'binding.gyp'],
};
const unwantedExtensions = new Set(['.map', '.md', '.markdown', '.cts', '.mts']);

/** Copies packages into `target/node_modules`, native addons for this platform alone. */
export function copyPackages(folders, target) {
  const platform = `${process.platform}-${process.arch}`;
  for (const [folder, { name }] of folders) {
    cpSync(folder, join(target, relative(root, folder)), {
      recursive: true,
      dereference: true,
      filter: (path) => {
        const inside = relative(folder, path);
        if (inside.split('/').includes('node_modules')) return false;
        if (unwanted[name]?.includes(inside)) return false;
        if (/\.d\.ts$/.test(path) || unwantedExtensions.has(extname(path))) return false;
        return extname(path) !== '.node' || isForPlatform(basename(path), platform);
      },
    });
  }
}

function isForPlatform(file, platform) {
  if (/musl|android/.test(file)) return false;
  return !/(linux|darwin|win32)/.test(file) || file.includes(platform);
}
