import type { Db } from '../../../../db/connection.ts';
import { closest } from '../../../contract/closest.ts';
import { ownFields, searchFieldNames, statusAliases } from './fields.ts';
import { parseSearch, searchError, type SearchNode } from './parse.ts';

/** A condition on `runs` with its parameters in order. */
export interface Condition {
  sql: string;
  parameters: (string | number)[];
}

type FieldNode = Extract<SearchNode, { kind: 'field' }>;

/**
 * A search as SQL that indexes serve: recipe fields through `runFields`, words through `runTexts`.
 * `hasField` says whether any stored recipe has a field that this version's recipes do not.
 * @throws {TesseraError} `badSearch`, marking the place
 */
export function compileSearch(
  query: string,
  hasField: (leaf: string) => boolean = () => false,
  nowMs: number = Date.now(),
): Condition {
  const known = new Set(searchFieldNames().map((name) => name.toLowerCase()));
  const visit = (node: SearchNode): Condition => {
    switch (node.kind) {
      case 'all':
        return join(node.parts.map(visit), 'AND', '1');
      case 'any':
        return join(node.parts.map(visit), 'OR', '0');
      case 'not': {
        const { sql, parameters } = visit(node.part);
        return { sql: `coalesce(${sql}, 0) = 0`, parameters };
      }
      case 'text':
        return {
          sql: `id IN (SELECT runId FROM runTexts WHERE ${isLike('text', node.text)})`,
          parameters: [`%${escapeLike(node.text.toLowerCase())}%`],
        };
      case 'field': {
        const field = node.field.toLowerCase();
        const leaf = field.split('.').at(-1) ?? field;
        if (!known.has(field) && !hasField(leaf)) throw unknownField(query, node);
        return compileField(query, node, nowMs);
      }
    }
  };
  return visit(parseSearch(query));
}

/** What the compiled conditions call. SQLite's own `lower` knows ASCII alone. */
export function prepareSearch(db: Db): void {
  db.function('lowerCase', { deterministic: true }, (text: unknown) =>
    typeof text === 'string' ? text.toLowerCase() : text,
  );
}

function join(parts: Condition[], word: string, none: string): Condition {
  if (parts.length === 0) return { sql: none, parameters: [] };
  return {
    sql: `(${parts.map(({ sql }) => sql).join(` ${word} `)})`,
    parameters: parts.flatMap(({ parameters }) => parameters),
  };
}

function unknownField(query: string, { field, at }: FieldNode): Error {
  const near = closest(field, searchFieldNames());
  return searchError(
    query,
    at,
    `no run has a field '${field}',`,
    near === undefined
      ? 'Put it in quotation marks to look for the words themselves.'
      : `Did you mean '${near}'? In quotation marks it is looked for as words.`,
  );
}

function compileField(query: string, node: FieldNode, nowMs: number): Condition {
  const field = node.field.toLowerCase();
  const own = Object.hasOwn(ownFields, field) ? ownFields[field] : undefined;
  if (own === undefined) return recipeField(query, node, field);
  switch (own.kind) {
    case 'number':
      return compare(own.sql, node.comparison, numberOf(query, node));
    case 'time':
      return compare(own.sql, node.comparison, timeOf(query, node, nowMs));
    case 'text':
      return textField(query, node, own.sql, field === 'status');
    case 'tag':
      return textField(query, node, 'tag', false, 'runTags');
    case 'note':
      return noteField(query, node);
  }
}

function compare(sql: string, comparison: FieldNode['comparison'], value: number): Condition {
  const sign = comparison === ':' ? '=' : comparison;
  return { sql: `${sql} ${sign} ?`, parameters: [value] };
}

function textField(
  query: string,
  node: FieldNode,
  column: string,
  isStatus: boolean,
  table?: string,
): Condition {
  onlyEqual(query, node);
  const value = node.value.toLowerCase();
  const wanted = isStatus ? (statusAliases[value] ?? value) : value;
  const test = isLike(column, wanted);
  const sql = table === undefined ? test : `id IN (SELECT runId FROM ${table} WHERE ${test})`;
  return negated(node, { sql, parameters: [pattern(wanted, node.isQuoted)] });
}

function noteField(query: string, node: FieldNode): Condition {
  onlyEqual(query, node);
  const like = `%${escapeLike(node.value.toLowerCase())}%`;
  return negated(node, {
    sql: `(id IN (SELECT runId FROM runNotes WHERE ${isLike('text', like)})
      OR id IN (SELECT id FROM runs WHERE notes <> '' AND ${isLike('notes', like)}))`,
    parameters: [like, like],
  });
}

/** `lr` is any field whose path ends so: `optimizer.lr`. */
function recipeField(query: string, node: FieldNode, field: string): Condition {
  const leaf = field.split('.').at(-1) ?? field;
  const path = field === leaf ? '' : ` AND (field = ? OR field LIKE ? ESCAPE '\\')`;
  const pathParameters = field === leaf ? [] : [field, `%.${escapeLike(field)}`];
  const among = (test: string, parameters: (string | number)[]): Condition => ({
    sql: `id IN (SELECT runId FROM runFields WHERE leaf = ? AND ${test}${path})`,
    parameters: [leaf, ...parameters, ...pathParameters],
  });
  const asNumber = Number(node.value);
  if (node.comparison !== ':' && node.comparison !== '!=')
    return among(`number ${node.comparison} ?`, [numberOf(query, node)]);
  if (!node.isQuoted && Number.isFinite(asNumber)) return negated(node, among('number = ?', [asNumber]));
  const like = pattern(node.value.toLowerCase(), node.isQuoted);
  // A path is also known by its last part: dataset:chats.jsonl.
  return negated(node, among(`(value LIKE ? ESCAPE '\\' OR value LIKE ? ESCAPE '\\')`, [like, `%/${like}`]));
}

function negated(node: FieldNode, { sql, parameters }: Condition): Condition {
  return node.comparison === '!=' ? { sql: `coalesce(${sql}, 0) = 0`, parameters } : { sql, parameters };
}

function onlyEqual(query: string, node: FieldNode): void {
  if (node.comparison === ':' || node.comparison === '!=') return;
  throw searchError(
    query,
    node.at,
    `'${node.field}' holds words: it cannot be compared by ${node.comparison}`,
    `Use ${node.field}:${node.value}, with * for any characters.`,
  );
}

function numberOf(query: string, node: FieldNode): number {
  const value = Number(node.value);
  if (Number.isFinite(value)) return value;
  const at = node.at + node.field.length + node.comparison.length;
  throw searchError(
    query,
    at,
    `'${node.value}' is no number to compare '${node.field}' with,`,
    `For example ${node.field}${node.comparison}1e-5.`,
  );
}

const spans: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** A day (2026-11-30), a moment, or so long ago (12h, 7d, 2w): `started>7d` is within the last week. */
function timeOf(query: string, node: FieldNode, nowMs: number): number {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)([hdw])$/i.exec(node.value) ?? [];
  if (amount !== undefined && unit !== undefined)
    return nowMs - Number(amount) * (spans[unit.toLowerCase()] ?? 0);
  const moment = /^\d{4}-\d{2}-\d{2}/.test(node.value) ? Date.parse(node.value) : Number.NaN;
  if (Number.isFinite(moment)) return moment;
  const at = node.at + node.field.length + node.comparison.length;
  throw searchError(
    query,
    at,
    `'${node.value}' is no time,`,
    `For example ${node.field}>2026-11-01, or ${node.field}>7d for the last seven days.`,
  );
}

/** LIKE itself takes a letter of ASCII for its capital: only a text with others calls back into this program. */
const isLike = (column: string, wanted: string) =>
  `${/[^\0-\x7f]/.test(wanted) ? `lowerCase(${column})` : column} LIKE ? ESCAPE '\\'`;

const escapeLike = (text: string) => text.replace(/[\\%_]/g, (sign) => `\\${sign}`);

/** `*` stands for any characters, but not in quotation marks. */
const pattern = (text: string, isQuoted: boolean) =>
  isQuoted ? escapeLike(text) : escapeLike(text).replaceAll('*', '%');
