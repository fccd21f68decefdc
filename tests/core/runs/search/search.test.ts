import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { assertIndexed, openDatabase, queryPlan, type Db } from '../../../../db/connection.ts';
import { noteQueries } from '../../../../db/queries/runNotes.ts';
import { listIdsSql, listOfSql, listSql, runQueries } from '../../../../db/queries/runs.ts';
import { compileSearch, prepareSearch } from '../../../../main/core/runs/search/compile.ts';

let db: Db;
const day = 86_400_000;
const nowMs = Date.UTC(2026, 10, 30, 12);

function add(id: string, recipe: object, fields: { createdAtMs?: number; name?: string } = {}): void {
  runQueries(db).insert({
    ...{
      id,
      kind: 'train',
      hashes: '{}',
      plan: '{"fill":0.9}',
      preflight: null,
      folder: '/tmp',
      plannedSteps: 9,
    },
    ...{ name: id, createdAtMs: nowMs, codeVersion: '0.1.0', ...fields },
    recipe: JSON.stringify(recipe),
  });
}

beforeEach(async () => {
  db = await openDatabase(':memory:');
  prepareSearch(db);
  add('one', {
    model: '/m/0.8b',
    dataset: '/data/support-desk.jsonl',
    packing: { strategy: 'bfd', budget: 8192, seed: 0 },
    optimizer: { lr: 1e-5 },
    supervise: { reasoning: true },
  });
  add(
    'two',
    { packing: { strategy: 'padded', seed: 7 }, optimizer: { lr: 2e-4 }, seed: 0 },
    { name: 'Nacht-Ärger' },
  );
  add('three', { packing: { strategy: 'bfd' }, optimizer: { lr: 3e-4 } }, { createdAtMs: nowMs - 30 * day });
  const runs = runQueries(db);
  runs.addTags('two', ['baseline', 'lr-sweep']);
  runs.update('three', { status: 'completed', lastLoss: 1.25, notes: 'warm-up halved' });
  noteQueries(db).addNote('one', { step: 3, atMs: nowMs, text: 'Spike from one long example' });
});
afterEach(() => {
  db.close();
});

function find(query: string): string[] {
  const { sql, parameters } = compileSearch(query, runQueries(db).hasField, nowMs);
  return runQueries(db).listIds(sql, parameters).sort();
}

describe('searching the history', () => {
  it.each([
    ['', ['one', 'three', 'two']],
    ['lr<1e-4 strategy:bfd', ['one']],
    ['lr<=2e-4', ['one', 'two']],
    ['lr>1e-5 strategy:bfd', ['three']],
    ['optimizer.lr=2e-4', ['two']],
    ['strategy!=bfd', ['two']],
    ['-strategy:bfd', ['two']],
    ['strategy:padded OR lr<1.5e-5', ['one', 'two']],
    ['(strategy:padded OR strategy:bfd) lr>=2e-4', ['three', 'two']],
    ['strategy:b*', ['one', 'three']],
    ['dataset:support-desk*', ['one']],
    ['dataset:support-desk.jsonl', ['one']],
    ['reasoning:true', ['one']],
    ['packing.seed:7', ['two']],
    ['tag:baseline', ['two']],
    ['tag:lr*', ['two']],
    ['tag!=baseline', ['one', 'three']],
    ['ärger', ['two']],
    ['"warm-up halved"', ['three']],
    ['spike', ['one']],
    ['note:"long example"', ['one']],
    ['status:finished', ['three']],
    ['loss<1.3', ['three']],
    ['started>7d', []],
    ['created>7d', ['one', 'two']],
    ['created<2026-11-02', ['three']],
    ['100%', []],
    ['a_b', []],
  ])('%s', (query, expected) => {
    expect(find(query)).toEqual(expected);
  });

  it.each([
    ['lr<fast', 4, 'is no number'],
    ['strategy:bfd lrr<1', 14, "no run has a field 'lrr'"],
    ['lr<', 4, 'a value is missing'],
    ['(strategy:bfd', 1, 'a parenthesis is not closed'],
    ['bfd)', 4, 'never opened'],
    ['name:"half', 6, 'a quotation mark is not closed'],
    ['a OR', 3, 'OR needs a term'],
    ['name<3', 1, 'cannot be compared'],
    ['created>soon', 9, 'is no time'],
  ])('says where %s is wrong', (query, character, problem) => {
    let message = '';
    try {
      find(query);
    } catch (error) {
      expect((error as { code: string }).code).toBe('badSearch');
      ({ message } = error as Error);
    }
    expect(message).toContain(problem);
    const [first = '', text, marker = ''] = message.split('\n');
    expect(text).toBe(query);
    expect(marker.indexOf('^') + 1).toBe(character);
    expect(first).toContain(character > query.length ? 'at the end' : `at character ${character}`);
  });

  it('proposes the field that was likely meant', () => {
    expect(() => find('stratgy:bfd')).toThrow(
      expect.objectContaining({ hint: expect.stringContaining("'strategy'") as string }),
    );
  });

  it('takes a recipe whose own names differ in case alone', () => {
    add('cased', { template: { arguments: { Tone: 'kind', tone: 'terse' } } });
    expect(runQueries(db).get('cased')).toBeDefined();
  });

  it('forgets the words of a note that is removed', () => {
    const [note] = noteQueries(db).notes('one');
    noteQueries(db).removeNote('one', note?.id ?? 0);
    expect(find('spike')).toEqual([]);
  });

  it('reads recipe fields by index, and the list without reading a recipe', () => {
    const plan = (query: string) => {
      const { sql, parameters } = compileSearch(query);
      return queryPlan(db, listIdsSql(sql), parameters).join('\n');
    };
    expect(queryPlan(db, listSql).join('\n')).toMatch(/runs USING COVERING INDEX runsSummary/);
    expect(queryPlan(db, listOfSql, ['[]'])[0]).toMatch(/SEARCH runs USING INDEX .*\(id=\?\)/);
    expect(plan('lr<1e-4')).toMatch(/runFieldsByNumber \(leaf=\? AND number<\?\)/);
    expect(plan('strategy:bfd')).toMatch(/runFieldsByValue \(leaf=\?/);
    for (const query of ['lr<1e-4', 'strategy:bfd', 'tag:baseline', 'spike'])
      expect(plan(query)).not.toMatch(/SCAN runs(?! USING COVERING)/);
    const { sql, parameters } = compileSearch('lr<1e-4');
    assertIndexed(db, listIdsSql(sql), parameters);
  });
});
