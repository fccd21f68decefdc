// Every file, npm script and command that a document names is there.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from './setup/paths.mjs';

const tracked = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).trim().split('\n');
const folders = new Set(tracked.filter((path) => path.includes('/')).map((path) => path.split('/')[0]));
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const commands = tracked.flatMap((path) => /^main\/cli\/commands\/(\w+)\.ts$/.exec(path)?.[1] ?? []);
/** Whether what follows `tessera` begins with a command: `data import` is `dataImport.ts`. */
const isCommand = (words) =>
  commands.some((name) => {
    const parts = name.split(/(?=[A-Z])/).map((part) => part.toLowerCase());
    return parts.every((part, i) => part === words[i]);
  });

/** What a document names that is not there, each with its line. */
function faultsOf(document) {
  const faults = [];
  const base = dirname(document);
  // Tests are named by their place under tests/ where a document says so.
  const exists = (path) =>
    [path, join(base, path), join('tests', path)].some((each) => existsSync(join(root, each)));
  for (const [index, line] of readFileSync(join(root, document), 'utf8').split('\n').entries()) {
    const fault = (what) => faults.push(`${document}:${index + 1}: ${what}`);
    for (const [, target] of line.matchAll(/\]\(([^)#\s]+)[^)]*\)/g))
      if (!/^[a-z]+:/.test(target) && !existsSync(join(root, base, target))) fault(`no file ${target}`);
    for (const [, quoted] of line.matchAll(/`([^`]+)`/g)) {
      const [word = ''] = quoted.split(' ');
      const path = word.replace(/:\d+$/, '').replace(/[,;]$/, '');
      const isPath =
        path.includes('/') && (folders.has(path.split('/')[0]) || /\.(test|spec)\.ts$/.test(path));
      // A pattern or a placeholder stands for many.
      if (isPath && !/[*<>{}$…]/.test(path) && !exists(path)) fault(`no file ${path}`);
    }
    for (const [, name] of line.matchAll(/npm run (?:-s )?([\w:]+)/g))
      if (scripts[name] === undefined) fault(`no npm script ${name}`);
    for (const [, said] of line.matchAll(/(?:`|-- )(?:tessera )([a-z]+(?: [a-z]+)?)/g))
      if (!isCommand(said.split(' '))) fault(`no command ${said}`);
    for (const [, said] of line.matchAll(/npm run (?:-s )?tessera -- ([a-z]+(?: [a-z]+)?)/g))
      if (!isCommand(said.split(' '))) fault(`no command ${said}`);
  }
  return faults;
}

const faults = tracked.filter((path) => path.endsWith('.md')).flatMap(faultsOf);
for (const fault of faults) console.error(fault);
process.exitCode = faults.length > 0 ? 1 : 0;
