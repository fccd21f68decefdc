import type { ParseArgsOptionDescriptor } from 'node:util';
import { TesseraError } from '../contract/errors.ts';
import type { CoreClient } from '../contract/index.ts';
import type { ProgressBar } from './progressBar.ts';

export interface Option extends ParseArgsOptionDescriptor {
  /** Name of the value in the help: `DIR`, `N`. */
  value?: string;
  help: string;
}
export type Options = Record<string, Option>;

export type OptionValues<O extends Options> = {
  [K in keyof O]: O[K] extends { multiple: true; type: 'string' }
    ? string[] | undefined
    : O[K]['type'] extends 'boolean'
      ? boolean
      : string | undefined;
};

/**
 * One command: a file of `commands/`, named by its words in camelCase (`dataImport.ts` is `tessera data import`),
 * which exports `command`. `run` returns the JSON value of the contract; `text` makes of it what a person reads.
 * A command that writes stdout itself returns undefined.
 */
export interface Command<O extends Options = Options, R = unknown> {
  summary: string;
  /** Positional arguments as the help shows them: `PATH…`. */
  usage: string;
  options: O;
  /** Fewest and most positional arguments; a call with others is refused. */
  numPositionals: [number, number];
  /** Options are not parsed but handed on as they are. */
  raw?: boolean;
  /** What it does, where it takes seconds and nothing tells more: `Writing the report`. */
  waiting?: string;
  run: (invocation: Invocation<O>) => Promise<R>;
  text?: (result: R) => string;
}

export interface Invocation<O extends Options = Options> {
  positionals: string[];
  options: OptionValues<O>;
  json: boolean;
  home: string;
  /** The core of the home, started where none runs; closed when the command ends. */
  core: () => Promise<CoreClient>;
  /** On stderr; several steps one after the other. */
  progress: ProgressBar;
  /** A line for people, on stderr. */
  note: (line: string) => void;
  /** Aborted by the first Ctrl-C where the command asks for it; without that, Ctrl-C ends the program. */
  interrupted: () => AbortSignal;
  /** The exit code where the result is printed and yet says no. */
  setExitCode: (code: number) => void;
}

export function defineCommand<const O extends Options, R>(command: Command<O, R>): Command<O, R> {
  return command;
}

/** A wrong call: exit code 2. */
export class UsageError extends TesseraError {}

export function usage(message: string, hint?: string): UsageError {
  return new UsageError('usage', message, hint);
}

/** A number among the options; absent stays undefined. */
export function numberOption(
  name: string,
  text: string | undefined,
  { min = -Infinity, max = Infinity, integer = false } = {},
): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value) || (integer && !Number.isInteger(value))) {
    throw usage(`--${name} takes ${integer ? 'a whole number' : 'a number'}, not '${text}'`);
  }
  if (value < min) throw usage(`--${name} must be at least ${String(min)}, not ${text}`);
  if (value > max) throw usage(`--${name} must be at most ${String(max)}, not ${text}`);
  return value;
}

/** One of a few words. */
export function choiceOption<const T extends string>(
  name: string,
  text: string | undefined,
  choices: readonly T[],
): T | undefined {
  if (text === undefined) return undefined;
  const choice = choices.find((each) => each === text);
  if (choice === undefined) throw usage(`--${name} is one of ${choices.join(', ')}, not '${text}'`);
  return choice;
}
