import { parseArgs } from 'node:util';
import { attachCore } from '../core/attach.ts';
import { defaultHome } from '../core/homeFolder.ts';
import { toErrorBody } from '../contract/errors.ts';
import type { CoreClient } from '../contract/index.ts';
import {
  UsageError,
  usage,
  type Command,
  type Invocation,
  type OptionValues,
  type Options,
} from './command.ts';
import { commandNames, findCommand, loadCommand } from './commands.ts';
import { commandHelp, commonOptions, overview, program, wayOut } from './help.ts';
import { closest } from '../contract/closest.ts';
import { printable, watchOutput } from './output.ts';
import { createProgressBar } from './progressBar.ts';

/** Runs one command line; returns the exit code. */
export async function tessera(args: string[]): Promise<number> {
  const json = args.includes('--json');
  watchOutput();
  try {
    return await dispatch(args, json);
  } catch (error) {
    const { details, ...body } = toErrorBody(error);
    if (json) process.stdout.write(`${JSON.stringify({ error: body, ...details })}\n`);
    else
      process.stderr.write(
        printable(`tessera: ${body.message}\n${body.hint === undefined ? '' : `  ${wayOut(body.hint)}\n`}`),
      );
    return error instanceof UsageError ? 2 : 1;
  }
}

async function dispatch(args: string[], json: boolean): Promise<number> {
  const found = findCommand(commandFirst(args.filter((arg) => arg !== '--json')));
  if (found === undefined) return await noCommand(args);
  const command = await loadCommand(found.name);
  const { values, positionals } =
    command.raw === true ? rawArguments(args, found.name) : parse(found, command, json);
  if (values.help === true) {
    process.stdout.write(`${commandHelp(found.name, command)}\n`);
    return 0;
  }
  const [fewest, most] = command.numPositionals;
  if (positionals.length < fewest || positionals.length > most) {
    throw usage(
      `usage: ${program} ${found.name} ${command.usage}`.trim(),
      `See ${program} ${found.name} --help.`,
    );
  }
  return await execute(command, values, positionals, json);
}

/** Where the words spell no command: the list where it is asked for, else what was likely meant. @throws {UsageError} */
async function noCommand(args: string[]): Promise<number> {
  const asksHelp = args.includes('--help') || args.includes('-h') || args[0] === 'help';
  const after = commandFirst(args.filter((arg) => arg !== '--json'));
  const end = after.findIndex((arg) => arg.startsWith('-'));
  const words = after.slice(0, end < 0 ? 2 : Math.min(end, 2));
  const [first = ''] = words;
  const group = commandNames().filter((name) => name.startsWith(`${first} `));
  if (args.length === 0 || asksHelp) {
    process.stdout.write(`${await overview(group.length > 0 ? group : undefined)}\n`);
    return args.length === 0 ? 2 : 0;
  }
  if (words.length === 0) throw usage('no command is given', `See ${program} --help.`);
  const near = closest(words.join(' '), commandNames()) ?? closest(first, commandNames());
  const hint = near === undefined ? `See ${program} --help.` : `Did you mean '${near}'?`;
  if (group.length === 0) throw usage(`there is no command '${words.join(' ')}'`, hint);
  const others = `There are: ${group.join(', ')}.`;
  if (words.length === 1) throw usage(`'${first}' alone is no command`, others);
  throw usage(`there is no command '${words.join(' ')}'`, near?.startsWith(`${first} `) ? hint : others);
}

/** `--home DIR` may stand before the command too. */
function commandFirst(args: string[]): string[] {
  let at = 0;
  while (/^--home(=|$)/.test(args[at] ?? '')) at += args[at] === '--home' ? 2 : 1;
  return [...args.slice(at), ...args.slice(0, at)];
}

type Values = Record<string, string | string[] | boolean | undefined>;

/** What goes to another program as it is, its `--json` and `--help` included. */
function rawArguments(args: string[], name: string): { values: Values; positionals: string[] } {
  return { values: {}, positionals: args.slice(args.indexOf(name.split(' ').at(-1) ?? '') + 1) };
}

function parse(
  found: { name: string; rest: string[] },
  command: Command,
  json: boolean,
): { values: Values; positionals: string[] } {
  const options: Options = { ...command.options, ...commonOptions };
  try {
    const { values, positionals } = parseArgs({
      args: withNegativeNumbers(found.rest, options),
      options,
      allowPositionals: true,
      allowNegative: true,
    });
    const flags = Object.entries(options).filter(([, option]) => option.type === 'boolean');
    const absent = Object.fromEntries(flags.map(([name]) => [name, false]));
    return { values: { ...absent, ...values, json }, positionals };
  } catch (error) {
    const unknown = /'(--[^'\s]+)/.exec((error as Error).message)?.[1];
    const near =
      unknown === undefined || unknown.slice(2) in options
        ? undefined
        : closest(unknown.slice(2), Object.keys(options));
    throw usage(
      `${found.name}: ${(error as Error).message.split('. To specify')[0] ?? ''}`,
      near === undefined ? `See ${program} ${found.name} --help.` : `Did you mean --${near}?`,
    );
  }
}

/** `--seed -1` as `--seed=-1`: a number is no option, and what is wrong with it is for the command to say. */
function withNegativeNumbers(args: string[], options: Options): string[] {
  const joined: string[] = [];
  for (const arg of args) {
    const before = joined.at(-1) ?? '';
    const isValue =
      /^-\.?\d/.test(arg) && options[before.slice(2)]?.type === 'string' && before.startsWith('--');
    if (isValue) joined[joined.length - 1] = `${before}=${arg}`;
    else joined.push(arg);
  }
  return joined;
}

async function execute(
  command: Command,
  values: Values,
  positionals: string[],
  json: boolean,
): Promise<number> {
  const progress = createProgressBar(process.stderr);
  if (values.home === '') throw usage('--home is empty', 'Give a folder, or leave --home away.');
  const home = typeof values.home === 'string' ? values.home : defaultHome();
  let client: Promise<CoreClient> | undefined;
  let interrupted: AbortController | undefined;
  let exitCode = 0;
  const invocation: Invocation = {
    positionals,
    options: values as OptionValues<Options>,
    json,
    home,
    core: () => (client ??= attachCore(home)),
    progress,
    note: (line) => {
      progress.clear();
      process.stderr.write(`${printable(wayOut(line))}\n`);
    },
    interrupted: () => {
      interrupted ??= onInterrupt();
      return interrupted.signal;
    },
    setExitCode: (code) => {
      exitCode = code;
    },
  };
  try {
    if (command.raw !== true) progress.wait(command.waiting ?? 'Working');
    const result = await command.run(invocation);
    progress.end();
    if (result !== undefined) {
      const text =
        json || command.text === undefined
          ? JSON.stringify(result, null, json ? 0 : 2)
          : printable(command.text(result));
      process.stdout.write(`${text}\n`);
    }
    return exitCode;
  } finally {
    progress.end();
    (await client?.catch(() => undefined))?.close();
  }
}

/** The first Ctrl-C asks; the second ends the program. */
function onInterrupt(): AbortController {
  const controller = new AbortController();
  process.once('SIGINT', () => {
    controller.abort();
    process.once('SIGINT', () => process.exit(130));
  });
  return controller;
}
