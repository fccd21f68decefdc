import { recipeSchema } from '../../../contract/recipe.ts';

/** What a search may name beside the fields of recipes. */
interface OwnField {
  kind: 'number' | 'text' | 'time' | 'tag' | 'note';
  /** SQL over `runs`. */
  sql: string;
}

const number = (sql: string): OwnField => ({ kind: 'number', sql });
const text = (sql: string): OwnField => ({ kind: 'text', sql });

export const ownFields: Readonly<Record<string, OwnField>> = {
  name: text('name'),
  id: text('id'),
  status: text('status'),
  reason: text('reason'),
  device: text('device'),
  tag: { kind: 'tag', sql: '' },
  note: { kind: 'note', sql: '' },
  donesteps: number('steps'),
  loss: number('lastLoss'),
  firstloss: number('firstLoss'),
  lastloss: number('lastLoss'),
  evalloss: number('evalLossAfter'),
  evallossbefore: number('evalLossBefore'),
  evallossafter: number('evalLossAfter'),
  bestloss: number('bestLoss'),
  tokenspersecond: number('tokensPerSecond'),
  fill: number('fill'),
  /** Seconds of training. */
  took: number('elapsedMs / 1000.0'),
  created: { kind: 'time', sql: 'createdAtMs' },
  started: { kind: 'time', sql: 'startedAtMs' },
  ended: { kind: 'time', sql: 'endedAtMs' },
};

/** Words of the window for what the history calls otherwise. */
export const statusAliases: Readonly<Record<string, string>> = {
  finished: 'completed',
  done: 'completed',
  training: 'running',
  waiting: 'queued',
};

interface Node {
  shape?: Record<string, Node | undefined>;
  unwrap?: () => Node;
}

/** Every path of a recipe: `optimizer.lr`. */
export function recipePaths(): string[] {
  const visit = (start: Node | undefined, path: string): string[] => {
    let node = start;
    while (node?.shape === undefined && node?.unwrap !== undefined) node = node.unwrap();
    if (node?.shape === undefined) return [path];
    return Object.entries(node.shape).flatMap(([key, each]) =>
      visit(each, path === '' ? key : `${path}.${key}`),
    );
  };
  return visit(recipeSchema.in as unknown as Node, '');
}

/** For completion and for the nearest name of one that is unknown. */
export function searchFieldNames(): string[] {
  const own = [
    'name',
    'status',
    'tag',
    'note',
    'device',
    'loss',
    'firstLoss',
    'lastLoss',
    'evalLoss',
    'bestLoss',
  ];
  const more = [
    'tokensPerSecond',
    'fill',
    'took',
    'doneSteps',
    'created',
    'started',
    'ended',
    'reason',
    'id',
  ];
  const leaves = recipePaths().map((path) => path.split('.').at(-1) ?? path);
  return [...new Set([...own, ...more, ...leaves, ...recipePaths()])];
}
