import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { existsSync } from 'node:fs';
import { parse, parseDocument } from 'yaml';
import { closest } from '../../contract/closest.ts';
import { TesseraError } from '../../contract/errors.ts';
import { issueWords } from '../../contract/issueWords.ts';
import { presets } from '../../contract/presets.ts';
import { recipeSchema, type Recipe, type RecipeInput } from '../../contract/recipe.ts';
import { bundled } from '../bundled.ts';
import { describeFileError } from '../datasets/readers/files.ts';

/**
 * Reads a recipe file, applies `key=value` settings (`optimizer.lr=1e-4`, values in YAML) and fills in defaults.
 * Relative paths count from the recipe's folder, else from the working folder. `-` is what comes by standard input.
 * @throws {TesseraError} `noFile`, `noPermission`, `badRecipe`, each naming the file, the line or the key
 */
export function loadRecipe(path: string, settings: string[] = []): Recipe {
  let text: string;
  try {
    text = readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    throw describeFileError(error, path);
  }
  const document = parseDocument(text);
  const [problem] = document.errors;
  if (problem?.code === 'MULTIPLE_DOCS')
    throw new TesseraError('badRecipe', `${path} holds more than one document`, 'A recipe is one YAML map.');
  if (problem !== undefined) {
    const line = problem.linePos?.[0].line;
    throw new TesseraError(
      'badRecipe',
      `${path}${line === undefined ? '' : `:${line}`}: ${problem.message.split('\n')[0] ?? ''}`,
    );
  }
  const value: unknown = document.toJS() ?? {};
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new TesseraError(
      'badRecipe',
      `${path} holds no keys`,
      'A recipe is a YAML map: model: …, dataset: …',
    );
  }
  for (const setting of settings) applySetting(value as Record<string, unknown>, setting);
  return resolvePaths(checkRecipe(value, path), dirname(resolve(path)));
}

/**
 * A recipe that comes with the program, with `key=value` settings; the model must be among them.
 * @throws {TesseraError} `noPreset`, naming those that there are; `badRecipe`
 */
export function loadPreset(name: string, settings: string[] = []): Recipe {
  const preset = presets.find((each) => each.name === name);
  if (preset === undefined) {
    const known = presets.map((each) => each.name).join(', ');
    throw new TesseraError('noPreset', `there is no preset '${name}'`, `There are: ${known}.`);
  }
  const value: Record<string, unknown> = structuredClone(preset.recipe);
  for (const setting of settings) applySetting(value, setting);
  if (value['model'] === undefined) {
    const hint = 'Give the folder of a Qwen3.5 model (--set model=DIR).';
    throw new TesseraError('badRecipe', `the preset '${name}' needs a model`, hint);
  }
  return resolvePaths(checkRecipe(value, `the preset '${name}'`), process.cwd());
}

/** @throws {TesseraError} `badRecipe`, naming the key; an unknown key comes with the one that was likely meant */
export function checkRecipe(value: unknown, where = 'recipe'): Recipe {
  const parsed = recipeSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  if (issue?.code === 'unrecognized_keys') {
    const key = issue.keys[0] ?? '';
    const place = [...issue.path, key].join('.');
    const near = closest(key, knownKeys(issue.path.map(String)));
    throw new TesseraError(
      'badRecipe',
      `${where}: there is no key '${place}'`,
      near === undefined
        ? `Known are: ${knownKeys(issue.path.map(String)).join(', ')}.`
        : `Did you mean '${near}'?`,
    );
  }
  const key = issue?.path.join('.') ?? '';
  throw new TesseraError('badRecipe', `${where}: ${key === '' ? '' : `'${key}' `}${issueWords(issue)}`);
}

function knownKeys(path: string[]): string[] {
  interface Node {
    shape?: Record<string, Node | undefined>;
    unwrap?: () => Node;
  }
  let node = recipeSchema.in as unknown as Node | undefined;
  for (const key of path) {
    node = node?.shape?.[key];
    // Optional fields and defaults wrap what they hold.
    while (node?.shape === undefined && node?.unwrap !== undefined) node = node.unwrap();
  }
  return Object.keys(node?.shape ?? {});
}

const rivals: Readonly<Record<string, string>> = {
  steps: 'epochs',
  epochs: 'steps',
  evalShare: 'evalDataset',
  evalDataset: 'evalShare',
};

function applySetting(recipe: Record<string, unknown>, setting: string): void {
  const equals = setting.indexOf('=');
  const keys = setting.slice(0, equals).split('.');
  const last = keys.pop();
  if (equals < 1 || last === undefined || last === '') {
    throw new TesseraError(
      'badRecipe',
      `--set takes key=value, not '${setting}'`,
      'A setting is KEY=VALUE (--set optimizer.lr=1e-4).',
    );
  }
  let target = recipe;
  for (const key of keys) {
    const next = (Object.hasOwn(target, key) ? target[key] : undefined) ?? {};
    if (typeof next !== 'object')
      throw new TesseraError('badRecipe', `--set ${setting}: '${key}' holds a value, not keys`);
    Object.defineProperty(target, key, { value: next, enumerable: true, writable: true, configurable: true });
    target = next as Record<string, unknown>;
  }
  // Of two that exclude each other, the one that is set replaces the one in the file.
  const rival = keys.length === 0 ? rivals[last] : undefined;
  if (rival !== undefined) Reflect.deleteProperty(recipe, rival);
  target[last] = parse(setting.slice(equals + 1), { schema: 'core' }) as unknown;
}

function resolvePaths(recipe: Recipe, folder: string): Recipe {
  const find = (path: string) => {
    if (isAbsolute(path)) return path;
    const found = [join(folder, path), resolve(path)].find((candidate) => existsSync(candidate));
    return found ?? path;
  };
  return {
    ...recipe,
    model: recipe.model === 'bundled' ? recipe.model : find(recipe.model),
    dataset: recipe.dataset === 'bundled' ? recipe.dataset : find(recipe.dataset),
    ...(recipe.evalDataset !== undefined && { evalDataset: find(recipe.evalDataset) }),
  };
}

/** `bundled` as the model or the dataset, as the paths that it stands for on this machine. */
export function withBundled(recipe: Recipe): Recipe {
  return {
    ...recipe,
    ...(recipe.model === 'bundled' && { model: bundled().model }),
    ...(recipe.dataset === 'bundled' && { dataset: bundled().samples }),
  };
}

/** SHA-256 over the recipe with its keys in order: the same settings, however written, have one hash. */
export function hashRecipe(recipe: Recipe | RecipeInput): string {
  return createHash('sha256')
    .update(JSON.stringify(sortKeys(recipe)))
    .digest('hex');
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, each]) => [key, sortKeys(each)]));
}
