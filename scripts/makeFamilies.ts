/**
 * Compares our renderer with Python's Jinja2 on chat templates of many families, and makes the fixed cases of it:
 * `node scripts/makeFamilies.ts [--templates DIR] [--chats FILE] [--write]`. Texts must be equal; what the assistant says
 * must be learned and what others say not, as markers in Python's own render tell. Without a difference `--write` puts
 * every pair of the fixed cases again, and of a template or chat that has none yet every fourth.
 * Needs python3 with jinja2. Exit code 1 where something differs.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parsePythonJson } from '../main/core/datasets/pythonJson.ts';
import { chatContext } from '../main/core/datasets/template/chat.ts';
import { TemplateError } from '../main/core/datasets/template/errors.ts';
import { DEFAULT_SUPERVISION } from '../main/core/datasets/template/supervision.ts';
import { compileTemplate, type Template } from '../main/core/datasets/template/template.ts';
import { roleOf } from '../main/core/datasets/template/origins.ts';
import { Dict } from '../main/core/datasets/template/values.ts';
import type { Value } from '../main/core/datasets/template/values.ts';

interface Wanted {
  template: string;
  chat: string;
  text?: string;
  error?: string;
  whose?: (number | null)[] | null;
}
type Case = [template: string, chat: string, text: string | null, learned: string[] | string];

const fixtures = join(import.meta.dirname, '../tests/fixtures/templates');
const { values: options } = parseArgs({
  options: {
    templates: { type: 'string', default: join(fixtures, 'families') },
    chats: { type: 'string', default: join(fixtures, 'chats.json') },
    show: { type: 'string', default: '2' },
    write: { type: 'boolean', default: false },
  },
});

const fourth = 4;
const casesFile = join(fixtures, 'families.json');
const fixed = JSON.parse(readFileSync(casesFile, 'utf8')) as Case[];
// Numbers stay as they are written: 1.0 is no 1.
const chats = parsePythonJson(readFileSync(options.chats, 'utf8'));
if (!(chats instanceof Dict)) throw new Error(`${options.chats} is no object of chats by name`);
const templates = Object.fromEntries(
  readdirSync(options.templates)
    .filter((name) => name.endsWith('.jinja'))
    .sort()
    .map((name) => [name.replace('.jinja', ''), readFileSync(join(options.templates, name), 'utf8')]),
);

function ours(
  source: string,
  chat: Value,
): { text: string; spans: (readonly [number, number])[] } | { error: string } {
  try {
    const context = chatContext(chat);
    const compiled = templatesBySource.get(source) ?? compileTemplate(source);
    templatesBySource.set(source, compiled);
    const { text, supervised } = compiled.renderSupervised(
      context,
      DEFAULT_SUPERVISION,
      new Date(2026, 6, 5, 9, 5, 7),
    );
    return { text, spans: [...supervised] };
  } catch (error) {
    if (error instanceof TemplateError) return { error: error.describe() };
    throw error;
  }
}

function rolesOf(chat: Value): string[] {
  const messages = chat instanceof Dict ? chat.get('messages') : undefined;
  return Array.isArray(messages) ? messages.map((one) => (one instanceof Dict ? roleOf(one) : '')) : [];
}

const templatesBySource = new Map<string, Template>();

/** What is wrong with our render of a case; undefined where nothing is. */
function difference(wanted: Wanted, got: ReturnType<typeof ours>, roles: string[]): string | undefined {
  if ('error' in got) return wanted.text === undefined ? undefined : `Python renders, we fail: ${got.error}`;
  if (wanted.text === undefined)
    return `Python fails (${wanted.error ?? ''}), we render ${JSON.stringify(got.text)}`;
  if (wanted.text !== got.text)
    return `Python: ${JSON.stringify(wanted.text)}\n  ours:   ${JSON.stringify(got.text)}`;
  const learned = new Uint8Array(wanted.text.length);
  for (const [from, to] of got.spans) learned.fill(1, from, to);
  const points = Array.from(wanted.text);
  const wrong = points.filter((_, at) => {
    const index = wanted.whose?.[at] ?? undefined;
    return index !== undefined && (roles[index] === 'assistant' ? 1 : 0) !== learned[at];
  });
  if (wrong.length === 0) return undefined;
  const spans = got.spans.map(([from, to]) => points.slice(from, to).join(''));
  return `wrong at ${JSON.stringify(wrong.join(''))} of ${JSON.stringify(wanted.text)}: learned ${JSON.stringify(spans)}`;
}

const python = spawnSync('python3', [join(import.meta.dirname, 'makeFamilies.py')], {
  input: JSON.stringify({ templates, chats: options.chats, now: [2026, 7, 5, 9, 5, 7] }),
  encoding: 'utf8',
  maxBuffer: 2 ** 30,
  stdio: ['pipe', 'pipe', 'inherit'],
});
const known = new Set(fixed.map(([template, chat]) => `${template} ${chat}`));
const old = new Set(fixed.map(([template]) => template));
const oldChats = new Set(fixed.map(([, chat]) => chat));
const shown = new Map<string, number>();
const cases: Case[] = [];
let numDifferences = 0;
let numMarked = 0;
const lines = python.stdout.split('\n').filter((line) => line !== '');
for (const [number, line] of lines.entries()) {
  const wanted = JSON.parse(line) as Wanted;
  const chat = chats.get(wanted.chat) ?? null;
  const got = ours(templates[wanted.template] ?? '', chat);
  if (wanted.whose) numMarked++;
  const found = difference(wanted, got, rolesOf(chat));
  if (found !== undefined) {
    numDifferences++;
    const before = shown.get(wanted.template) ?? 0;
    shown.set(wanted.template, before + 1);
    if (before < Number(options.show)) console.log(`${wanted.template} on ${wanted.chat}\n  ${found}`);
  }
  const isNew = !old.has(wanted.template) || !oldChats.has(wanted.chat);
  const isKept = known.has(`${wanted.template} ${wanted.chat}`) || (isNew && number % fourth === 0);
  if (!isKept) continue;
  const points = Array.from(wanted.text ?? '');
  const learned =
    'error' in got ? (wanted.error ?? '') : got.spans.map(([from, to]) => points.slice(from, to).join(''));
  cases.push([wanted.template, wanted.chat, wanted.text ?? null, learned]);
}
console.log(
  `${lines.length} renders of ${Object.keys(templates).length} templates, ${numMarked} with known origins, ${numDifferences} differences`,
);
if (options.write && numDifferences === 0)
  writeFileSync(casesFile, `[\n${cases.map((one) => JSON.stringify(one)).join(',\n')}\n]\n`);
process.exitCode = numDifferences === 0 && numMarked > 0 ? 0 : 1;
