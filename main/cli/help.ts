import { commandNames, loadCommand } from './commands.ts';
import { forTerminal } from '../contract/wayOut.ts';
import type { Command, Options } from './command.ts';

export const commonOptions = {
  json: { type: 'boolean', help: 'one JSON value on stdout, nothing else there' },
  home: { type: 'string', value: 'DIR', help: 'where caches, runs and the database live (TESSERA_HOME)' },
  help: { type: 'boolean', short: 'h', help: 'this text' },
} satisfies Options;

/** How this program is called here: in a clone, where npm has started it, through npm alone. */
export const program = ['start', 'tessera'].includes(process.env.npm_lifecycle_event ?? '')
  ? 'npm run -s tessera --'
  : 'tessera';

/** A way out in the core's words, as it is typed here. */
export const wayOut = (text: string) => forTerminal(text, program);

/** Of all commands, or of those named. */
export async function overview(names = commandNames()): Promise<string> {
  const rows: [string, string][] = [];
  for (const name of names) rows.push([name, (await loadCommand(name)).summary]);
  return [
    'Tessera fine-tunes hybrid language models on your own chats.',
    '',
    `Usage: ${program} COMMAND [arguments] [--json] [--home DIR]`,
    '',
    ...columns(rows),
    '',
    `${program} COMMAND --help tells more. Exit codes: 0 done, 1 failed, 2 wrong call.`,
  ].join('\n');
}

export function commandHelp(name: string, command: Command): string {
  const options = Object.entries<Options[string]>({ ...command.options, ...commonOptions });
  return [
    command.summary,
    '',
    `Usage: ${program} ${name} ${command.usage}`.trimEnd(),
    '',
    ...columns(options.map(([key, option]) => [optionSyntax(key, option), option.help])),
  ].join('\n');
}

function optionSyntax(name: string, option: Options[string]): string {
  const value = option.type === 'string' ? ` ${option.value ?? 'TEXT'}` : '';
  const many = option.multiple === true ? ' …' : '';
  return `${option.short === undefined ? '' : `-${option.short}, `}--${name}${value}${many}`;
}

function columns(rows: [string, string][]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
