import type { RecipeInput } from '../../../main/contract/recipe.ts';

export interface Choice {
  value: string;
  label: string;
}

/** One line of the form. `path` is the field's place in the recipe: `optimizer.lr`. */
export interface RecipeField {
  path: string;
  label: string;
  kind: 'text' | 'integer' | 'number' | 'choice' | 'switch' | 'model' | 'dataset' | 'device';
  unit?: string;
  /** One line: what it does, or what the default stands for. */
  why: string;
  choices?: Choice[];
  /** Left empty it is not in the recipe, and its default holds. */
  placeholder?: string;
}

export interface RecipeGroup {
  title: string;
  fields: RecipeField[];
  folded?: { title: string; fields: RecipeField[] };
}

const choices = (...values: (string | [string, string])[]) =>
  values.map((value) =>
    typeof value === 'string' ? { value, label: value } : { value: value[0], label: value[1] },
  );

/** The recipe as a form, in the order in which people decide. */
export const recipeGroups: RecipeGroup[] = [
  {
    title: 'Model and data',
    fields: [
      {
        path: 'model',
        label: 'Model',
        kind: 'model',
        why: 'A folder with config, safetensors and tokenizer',
      },
      {
        path: 'dataset',
        label: 'Dataset',
        kind: 'dataset',
        choices: choices(['bundled', 'Sample chats']),
        why: 'Imported chats or texts',
      },
      {
        path: 'evalShare',
        label: 'Held out',
        kind: 'number',
        placeholder: '0',
        why: 'Share never trained on; its loss is the honest one',
      },
      {
        path: 'epochs',
        label: 'Epochs',
        kind: 'integer',
        placeholder: '1',
        why: 'How often each example is seen',
      },
    ],
    folded: {
      title: 'Supervision, seed',
      fields: [
        {
          path: 'supervise.turns',
          label: 'Learn from',
          kind: 'choice',
          choices: choices(['assistant', 'every answer'], ['last', 'the last answer'], ['all', 'everything']),
          why: 'Which tokens count in the loss',
        },
        {
          path: 'supervise.reasoning',
          label: 'Reasoning too',
          kind: 'switch',
          why: 'Whether thinking blocks count',
        },
        {
          path: 'seed',
          label: 'Seed',
          kind: 'integer',
          why: 'Same seed, same data: the same run to the bit',
        },
      ],
    },
  },
  {
    title: 'Batch',
    fields: [
      {
        path: 'packing.budget',
        label: 'Budget',
        kind: 'integer',
        unit: 'tokens',
        why: 'Positions in one bin; longer examples are cut',
      },
      {
        path: 'packing.strategy',
        label: 'Strategy',
        kind: 'choice',
        choices: choices(
          ['best-fit', 'Best fit, shuffled'],
          ['bfd', 'Best fit decreasing'],
          ['ffd', 'First fit decreasing'],
          ['in-order', 'In order'],
          ['sorted', 'Sorted, padded'],
          ['padded', 'Padded'],
        ),
        why: 'Best fit fills bins and keeps the order random',
      },
      {
        path: 'gradAccumulation',
        label: 'Bins per step',
        kind: 'integer',
        why: 'Gradients of so many bins make one update',
      },
    ],
    folded: {
      title: 'Too long, packing seed',
      fields: [
        {
          path: 'packing.overlong',
          label: 'Too long',
          kind: 'choice',
          choices: choices(
            ['', 'chats cut, texts split'],
            ['truncate', 'cut at the end'],
            ['split', 'split'],
            ['drop', 'leave out'],
          ),
          why: 'What happens beyond the budget',
        },
        {
          path: 'packing.seed',
          label: 'Packing seed',
          kind: 'integer',
          why: 'Order in which bins are filled',
        },
      ],
    },
  },
  {
    title: 'Optimizer',
    fields: [
      { path: 'optimizer.lr', label: 'Learning rate', kind: 'number', why: 'At its peak' },
      {
        path: 'schedule.kind',
        label: 'Schedule',
        kind: 'choice',
        choices: choices('cosine', 'linear', 'constant'),
        why: 'How it falls from the peak',
      },
      {
        path: 'schedule.warmupSteps',
        label: 'Warm-up',
        kind: 'integer',
        unit: 'steps',
        why: 'Rises from zero over so many',
      },
      {
        path: 'optimizer.clip',
        label: 'Clip at norm',
        kind: 'number',
        why: 'Of the whole gradient; 0 switches it off',
      },
      { path: 'optimizer.weightDecay', label: 'Weight decay', kind: 'number', why: 'Matrices only' },
    ],
    folded: {
      title: 'AdamW in detail',
      fields: [
        { path: 'schedule.minLr', label: 'Lowest rate', kind: 'number', why: 'Where the schedule ends' },
        { path: 'optimizer.eps', label: 'ε', kind: 'number', why: 'Added to the root of the second moment' },
        {
          path: 'optimizer.decay1d',
          label: 'Decay vectors',
          kind: 'switch',
          why: 'Norms and gates decay too',
        },
        {
          path: 'optimizer.mode',
          label: 'State',
          kind: 'choice',
          choices: choices(
            ['master32', 'fp32 master, 16 B a parameter'],
            ['bf16sr', 'bf16, stochastic rounding'],
          ),
          why: 'bf16 halves the memory, on a GPU',
        },
        {
          path: 'optimizer.gradients',
          label: 'Gradients',
          kind: 'choice',
          choices: choices(['', 'bf16 where it loses nothing'], ['fp32', 'fp32'], ['bf16', 'bf16']),
          why: 'bf16 needs the bf16 state, one bin per step',
        },
      ],
    },
  },
  {
    title: 'Where and how',
    fields: [
      {
        path: 'device',
        label: 'Device',
        kind: 'device',
        choices: choices(['auto', 'a GPU, else the CPU'], ['cpu', 'CPU']),
        why: 'Where it trains',
      },
      {
        path: 'recompute',
        label: 'Recompute',
        kind: 'choice',
        choices: choices(
          ['auto', 'what does not fit'],
          ['P0', 'nothing'],
          ['P2', 'little'],
          ['P1', 'projections and cores'],
          ['full', 'everything'],
        ),
        why: 'Saves memory for time; gradients stay identical',
      },
      {
        path: 'sharding',
        label: 'Split over GPUs',
        kind: 'choice',
        choices: choices(
          ['', 'what does not fit'],
          ['optimizer', 'optimizer state'],
          ['gradients', 'and gradients'],
          ['weights', 'and weights'],
        ),
        why: 'With several GPUs: what each keeps a share of',
      },
    ],
  },
  {
    title: 'Saving',
    fields: [
      {
        path: 'checkpoint.everySteps',
        label: 'Checkpoint every',
        kind: 'integer',
        unit: 'steps',
        placeholder: 'at the end',
        why: 'Besides the one at the end',
      },
      {
        path: 'evaluate.everySteps',
        label: 'Evaluate every',
        kind: 'integer',
        unit: 'steps',
        placeholder: 'first, last',
        why: 'Held-out loss',
      },
      {
        path: 'profileAtStep',
        label: 'Profile at step',
        kind: 'integer',
        placeholder: 'the tenth',
        why: 'Times every operation of that step',
      },
    ],
  },
];

export function getField(recipe: RecipeInput, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (value, key) => (value === undefined ? undefined : (value as Record<string, unknown>)[key]),
      recipe,
    );
}

/** A copy of the recipe with one field set; `undefined` takes it out. */
export function setField(recipe: RecipeInput, path: string, value: unknown): RecipeInput {
  const copy = structuredClone(recipe) as Record<string, unknown>;
  const keys = path.split('.');
  const last = keys.pop() ?? path;
  let place = copy;
  for (const key of keys) place = (place[key] ??= {}) as Record<string, unknown>;
  if (value === undefined) Reflect.deleteProperty(place, last);
  else place[last] = value;
  return copy as RecipeInput;
}

/** What a person typed, as the recipe takes it; empty is the default, and what is no number stays for the check to name. */
export function parseField(field: RecipeField, text: string): unknown {
  const trimmed = text.trim();
  if (trimmed === '') return undefined;
  if (field.kind !== 'number' && field.kind !== 'integer') return trimmed;
  const value = Number(trimmed.replaceAll(',', ''));
  return Number.isFinite(value) ? value : trimmed;
}
