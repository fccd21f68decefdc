import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { TesseraError } from '../../contract/errors.ts';

/** What a dataset needs of a model: its tokenizer and its chat templates, wherever the folder keeps them. */
export interface ModelFolder {
  dir: string;
  tokenizerFile: string;
  tokenizerHash: string;
  /** By name; `default` where the folder has a single one. Empty: the model has none. */
  templates: Map<string, string>;
  /** `bos_token`, `eos_token`, … as the template sees them; absent ones are undefined there. */
  specialTokens: Record<string, string>;
  /** Whether the tokenizer is told to add a BOS; undefined: its post-processor says. */
  addBos: boolean | undefined;
}

const specialTokenNames = [
  'bos_token',
  'eos_token',
  'unk_token',
  'sep_token',
  'pad_token',
  'cls_token',
  'mask_token',
];

/**
 * Reads tokenizer and templates of a model folder in the places where transformers keeps them.
 * @throws {TesseraError} `noModel`, `noTokenizer`, `badModelFile`, each naming the folder or file
 */
export function readModelFolder(path: string): ModelFolder {
  const dir = resolve(path);
  if (!existsSync(dir) || !statSync(dir).isDirectory()) {
    throw new TesseraError('noModel', `${dir} is no folder`, 'Give the folder of a Hugging Face model.');
  }
  const tokenizerFile = join(dir, 'tokenizer.json');
  if (!existsSync(tokenizerFile)) {
    const hint = 'Copy the tokenizer.json that belongs to the model into its folder.';
    throw new TesseraError('noTokenizer', `the model folder ${dir} has no tokenizer.json`, hint);
  }
  const config = readJson(join(dir, 'tokenizer_config.json')) ?? {};
  return {
    dir,
    tokenizerFile,
    tokenizerHash: hashParts([readFileSync(tokenizerFile)]),
    templates: readTemplates(dir, config),
    specialTokens: readSpecialTokens({ ...readJson(join(dir, 'special_tokens_map.json')), ...config }),
    addBos: typeof config['add_bos_token'] === 'boolean' ? config['add_bos_token'] : undefined,
  };
}

/**
 * The template that transformers would take: the named one, else `tool_use` for rows with tools, else `default`,
 * else the only one.
 * @throws {TesseraError} `noTemplate`
 */
export function chooseTemplate(model: ModelFolder, name: string | undefined, hasTools: boolean): string {
  const { templates } = model;
  if (name !== undefined) {
    const named = templates.get(name);
    if (named !== undefined) return named;
    const known = [...templates.keys()].join(', ') || 'none';
    throw new TesseraError(
      'noTemplate',
      `${model.dir} has no chat template named '${name}'; it has: ${known}`,
    );
  }
  const source =
    (hasTools ? templates.get('tool_use') : undefined) ??
    templates.get('default') ??
    (templates.size === 1 ? [...templates.values()][0] : undefined);
  if (source !== undefined) return source;
  const problem =
    templates.size === 0 ? 'has no chat template' : 'has several chat templates and none is the default';
  throw new TesseraError('noTemplate', `${model.dir} ${problem}`, 'Name one, or add a chat_template.jinja.');
}

/** One hash over all templates and their names. */
export function hashTemplates(templates: Map<string, string>): string {
  return hashParts([...templates].sort().flat());
}

/** SHA-256 over length-prefixed parts, so that moving text between parts changes it. */
export function hashParts(parts: (string | Uint8Array)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${String(part.length)}:`).update(part);
  return hash.digest('hex');
}

function readTemplates(dir: string, config: Record<string, unknown>): Map<string, string> {
  const templates = new Map<string, string>();
  const legacy = readJson(join(dir, 'chat_template.json'))?.['chat_template'];
  addTemplates(templates, legacy);
  addTemplates(templates, config['chat_template']);
  const file = join(dir, 'chat_template.jinja');
  const extraDir = join(dir, 'additional_chat_templates');
  // Files win: transformers ignores the configuration's templates where there is a file.
  if (existsSync(file)) {
    templates.clear();
    templates.set('default', readFileSync(file, 'utf8'));
  }
  if (existsSync(extraDir)) {
    for (const name of readdirSync(extraDir)
      .filter((entry) => entry.endsWith('.jinja'))
      .sort()) {
      templates.set(basename(name, '.jinja'), readFileSync(join(extraDir, name), 'utf8'));
    }
  }
  return templates;
}

function addTemplates(templates: Map<string, string>, value: unknown): void {
  if (typeof value === 'string') templates.set('default', value);
  if (!Array.isArray(value)) return;
  for (const entry of value as unknown[]) {
    const { name, template } = (entry ?? {}) as Record<string, unknown>;
    if (typeof name === 'string' && typeof template === 'string') templates.set(name, template);
  }
}

function readSpecialTokens(config: Record<string, unknown>): Record<string, string> {
  const tokens: Record<string, string> = {};
  for (const name of specialTokenNames) {
    const value = config[name];
    const content =
      typeof value === 'object' && value !== null ? (value as Record<string, unknown>)['content'] : value;
    if (typeof content === 'string') tokens[name] = content;
  }
  return tokens;
}

function readJson(path: string): Record<string, unknown> | undefined {
  if (!existsSync(path)) return undefined;
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch (error) {
    throw new TesseraError(
      'badModelFile',
      `${path} is no JSON: ${(error as Error).message}`,
      'Copy the file again.',
    );
  }
  throw new TesseraError('badModelFile', `${path} is no JSON object`, 'Copy the file again.');
}
