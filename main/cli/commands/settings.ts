import { closest } from '../../contract/closest.ts';
import { issueWords } from '../../contract/issueWords.ts';
import { settingsSchema, type CoreSettings } from '../../contract/settings.ts';
import { defineCommand, usage } from '../command.ts';
import { program } from '../help.ts';
import { textTable } from '../runText.ts';

type Value = string | number | boolean | undefined;
const groups = ['notifications', 'defaults'] as const;

/** Every setting by its name as the command line has it, in the order of the file. */
function flatten(settings: CoreSettings): [string, Value][] {
  return [
    ['diskBudgetGib', settings.diskBudgetGib],
    ...groups.flatMap((group) => {
      const values: Partial<Record<string, Value>> = settings[group];
      const names = Object.keys(settingsSchema.shape[group].unwrap().shape);
      return names.map((name): [string, Value] => [`${group}.${name}`, values[name]]);
    }),
  ];
}

/** `true`, `4096`, `cuda:0`; nothing after the sign takes a default back. */
function valueOf(text: string): Value {
  if (text === '') return undefined;
  if (text === 'true' || text === 'false') return text === 'true';
  return Number.isFinite(Number(text)) ? Number(text) : text;
}

/** @throws {UsageError} naming the setting */
function change(settings: CoreSettings, assignments: string[]): CoreSettings {
  const changed = structuredClone(settings) as Record<string, unknown>;
  const known = flatten(settings).map(([name]) => name);
  for (const assignment of assignments) {
    const [, name = '', text] = /^([^=]*)(?:=(.*))?$/s.exec(assignment) ?? [];
    if (!known.includes(name)) {
      const near = closest(name, known);
      const hint = near === undefined ? `There are: ${known.join(', ')}.` : `Did you mean '${near}'?`;
      throw usage(`there is no setting '${name}'`, hint);
    }
    if (text === undefined) throw usage(`'${name}' is given no value`, `For example ${name}=VALUE.`);
    const [group = '', field] = name.split('.');
    const target = field === undefined ? changed : (changed[group] as Record<string, unknown>);
    target[field ?? group] = valueOf(text);
  }
  const parsed = settingsSchema.safeParse(changed);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw usage(`'${issue?.path.join('.') ?? ''}' ${issueWords(issue)}`);
}

export const command = defineCommand({
  summary: 'Show the settings of the home, or change some',
  usage: '[KEY=VALUE…]',
  options: {},
  numPositionals: [0, Infinity],
  run: async ({ positionals, core }) => {
    const client = await core();
    const shown = await client.call('settings:get', {});
    return positionals.length === 0
      ? shown
      : client.call('settings:set', change(shown.settings, positionals));
  },
  text: ({ settings, file }) => {
    const rows = flatten(settings).map(([name, value]) => [name, value === undefined ? '–' : String(value)]);
    return `${textTable(['setting', 'value'], rows)}\n\nKept in ${file}; change one with: ${program} settings KEY=VALUE`;
  },
});
