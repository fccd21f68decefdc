import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Command } from './command.ts';

const folder = join(import.meta.dirname, 'commands');

/** Names of all commands, from the folder: `dataImport.ts` → `data import`. */
export function commandNames(): string[] {
  return readdirSync(folder)
    .filter((file) => /\.(ts|js)$/.test(file))
    .map((file) => file.replace(/\.(ts|js)$/, '').replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`))
    .sort();
}

export async function loadCommand(name: string): Promise<Command> {
  const file = name.replace(/ ([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const extension = import.meta.filename.endsWith('.ts') ? '.ts' : '.js';
  const module = (await import(pathToFileURL(join(folder, file + extension)).href)) as { command: Command };
  return module.command;
}

/** The longest name that the first words spell, and what follows it. */
export function findCommand(words: string[]): { name: string; rest: string[] } | undefined {
  const names = new Set(commandNames());
  for (const length of [2, 1]) {
    // `first-run` is `first run`.
    const name = words.slice(0, length).join(' ').replaceAll('-', ' ');
    if (names.has(name)) return { name, rest: words.slice(length) };
  }
  return undefined;
}
