import type { RunSummary } from '../../../main/contract/runs.ts';
import { ago, compactCount, decimal, duration, percent, scientific } from '../../format.ts';

export interface RunColumn {
  key: string;
  label: string;
  /** Of the grid. */
  width: string;
  isRight?: boolean;
  /** Absent: the table draws it itself. */
  text?: (run: RunSummary, nowMs: number) => string;
  /** Absent: not to be sorted by. Runs without a value come last. */
  order?: (run: RunSummary) => number | string | undefined;
}

const lastPart = (path: string | undefined) => path?.split(/[\\/]/).at(-1) ?? '–';
const startOf = (run: RunSummary) => run.startedAtMs ?? run.createdAtMs;

export const runColumns: RunColumn[] = [
  { key: 'name', label: 'Run', width: 'minmax(104px, 1.6fr)', order: (run) => run.name.toLowerCase() },
  { key: 'status', label: 'State', width: 'minmax(76px, 88px)', order: (run) => run.status },
  {
    key: 'dataset',
    label: 'Data',
    width: 'minmax(56px, 0.7fr)',
    text: (run) => lastPart(run.dataset),
    order: (run) => lastPart(run.dataset),
  },
  {
    key: 'model',
    label: 'Model',
    width: 'minmax(56px, 0.7fr)',
    text: (run) => lastPart(run.model),
    order: (run) => lastPart(run.model),
  },
  {
    key: 'device',
    label: 'Device',
    width: '64px',
    text: (run) => run.device ?? '–',
    order: (run) => run.device,
  },
  {
    key: 'strategy',
    label: 'Strategy',
    width: 'minmax(56px, 72px)',
    text: (run) => run.strategy ?? '–',
    order: (run) => run.strategy,
  },
  {
    key: 'peakLr',
    label: 'Peak lr',
    width: '64px',
    isRight: true,
    text: (run) => (run.peakLr === undefined ? '–' : scientific(run.peakLr)),
    order: (run) => run.peakLr,
  },
  { key: 'steps', label: 'Steps', width: 'minmax(84px, 104px)', isRight: true, order: (run) => run.steps },
  { key: 'curve', label: 'Loss', width: 'minmax(72px, 88px)' },
  {
    key: 'lastLoss',
    label: 'Last',
    width: '56px',
    isRight: true,
    text: (run) => decimal(run.lastLoss, 3),
    order: (run) => run.lastLoss,
  },
  {
    key: 'evalLossAfter',
    label: 'Held out',
    width: '64px',
    isRight: true,
    text: (run) => decimal(run.evalLossAfter, 3),
    order: (run) => run.evalLossAfter,
  },
  {
    key: 'bestLoss',
    label: 'Best',
    width: '56px',
    isRight: true,
    text: (run) => decimal(run.bestLoss, 3),
    order: (run) => run.bestLoss,
  },
  {
    key: 'tokensPerSecond',
    label: 'tok/s',
    width: '64px',
    isRight: true,
    text: (run) => (run.tokensPerSecond === undefined ? '–' : compactCount(run.tokensPerSecond)),
    order: (run) => run.tokensPerSecond,
  },
  {
    key: 'fill',
    label: 'Fill',
    width: '64px',
    isRight: true,
    text: (run) => (run.fill === undefined ? '–' : percent(run.fill)),
    order: (run) => run.fill,
  },
  {
    key: 'took',
    label: 'Took',
    width: 'minmax(68px, 88px)',
    isRight: true,
    text: (run) => (run.elapsedMs > 0 ? duration(run.elapsedMs) : '–'),
    order: (run) => run.elapsedMs,
  },
  {
    key: 'started',
    label: 'Started',
    width: 'minmax(68px, 80px)',
    isRight: true,
    text: (run, nowMs) => ago(startOf(run), nowMs),
    order: startOf,
  },
  { key: 'tags', label: 'Tags', width: 'minmax(32px, 1fr)' },
];

export const defaultColumns = [
  'name',
  'status',
  'dataset',
  'strategy',
  'peakLr',
  'steps',
  'curve',
  'lastLoss',
  'bestLoss',
  'tokensPerSecond',
  'took',
  'started',
  'tags',
];

export interface RunOrder {
  key: string;
  isDescending: boolean;
}

/** In the order asked for; equal ones, and those without a value, stay newest first. */
export function sortRuns(runs: RunSummary[], { key, isDescending }: RunOrder): RunSummary[] {
  const order = runColumns.find((column) => column.key === key)?.order;
  if (order === undefined) return runs;
  const sign = isDescending ? -1 : 1;
  return [...runs].sort((a, b) => {
    const [x, y] = [order(a), order(b)];
    if (x === undefined || y === undefined) return x === y ? 0 : x === undefined ? 1 : -1;
    return x === y ? 0 : x < y ? -sign : sign;
  });
}
