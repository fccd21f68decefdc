import type { EvaluationRow, EventRow, RunListRow, SummaryRow } from '../../../db/queries/runs.ts';
import {
  preflight,
  runHashes,
  runPlan,
  type Preflight,
  type RunDetail,
  type RunNote,
  type RunSample,
  type RunStatus,
  type RunSummary,
} from '../../contract/runs.ts';
import { currentProof } from './storedProof.ts';

const optionalColumns = [
  ...([
    'reason',
    'firstLoss',
    'lastLoss',
    'evalLossBefore',
    'evalLossAfter',
    'bestLoss',
    'bestStep',
  ] as const),
  ...([
    'tokensPerSecond',
    'startedAtMs',
    'endedAtMs',
    'deletedAtMs',
    'strategy',
    'peakLr',
    'dataset',
  ] as const),
  ...(['model', 'device', 'fill'] as const),
];

/** A row of the database as the contract shows it. */
export function summarise(row: SummaryRow): RunSummary {
  const summary: RunSummary = {
    id: row.id,
    name: row.name,
    status: row.status as RunStatus,
    steps: row.steps,
    plannedSteps: row.plannedSteps,
    createdAtMs: row.createdAtMs,
    elapsedMs: row.elapsedMs,
    archived: row.archivedAtMs !== null,
    tags: JSON.parse(row.tags) as string[],
  };
  const all: Partial<Record<string, unknown>> = summary;
  for (const name of optionalColumns) if (row[name] !== null) all[name] = row[name];
  return summary;
}

/** What belongs to a run beside its row. */
export interface RunParts {
  events: EventRow[];
  evaluations: EvaluationRow[];
  timeNotes: RunNote[];
  samples: RunSample[];
}

function storedPreflight(text: string): Preflight {
  const stored = preflight.parse(JSON.parse(text));
  return stored.isolation ? { ...stored, isolation: currentProof(stored.isolation) } : stored;
}

export function describe(row: RunListRow, { events, evaluations, timeNotes, samples }: RunParts): RunDetail {
  const known = row.preflight === null ? undefined : storedPreflight(row.preflight);
  return {
    ...summarise(row),
    recipe: JSON.parse(row.recipe) as Record<string, unknown>,
    hashes: runHashes.parse(JSON.parse(row.hashes)),
    plan: runPlan.parse(JSON.parse(row.plan)),
    ...(row.codeVersion !== null && { codeVersion: row.codeVersion }),
    kernels: JSON.parse(row.kernels ?? '[]') as Record<string, unknown>[],
    ...(known !== undefined && { preflight: known, ...forecastOf(row, known) }),
    events: events.map(({ atMs, step, kind, data }) => ({
      atMs,
      ...(step !== null && { step }),
      kind,
      data: JSON.parse(data) as Record<string, unknown>,
    })),
    evaluations: evaluations.map(({ step, phase, loss, tokens }) => ({
      ...{ step, phase, tokens },
      loss: loss ?? Number.NaN,
      perplexity: Math.exp(loss ?? Number.NaN),
    })),
    ...wayOut(row, events),
    ...(row.checkpointStep !== null && { checkpointStep: row.checkpointStep }),
    activeMs: row.activeMs,
    folder: row.folder,
    notes: row.notes,
    timeNotes,
    samples,
  };
}

/** What can be done about a failure, or what is waited for, where that is what the run's reason tells of. */
function wayOut({ status, reason }: RunListRow, events: EventRow[]): Pick<RunDetail, 'hint'> {
  const last = events.findLast(({ kind }) => kind === status);
  const { message, hint } = JSON.parse(last?.data ?? '{}') as { message?: unknown; hint?: unknown };
  return typeof hint === 'string' && message === reason ? { hint } : {};
}

function forecastOf(row: RunListRow, { seconds, errorSeconds = 0 }: Preflight): Pick<RunDetail, 'forecast'> {
  if (seconds === undefined || row.status !== 'completed') return {};
  return { forecast: { seconds, errorSeconds, tookSeconds: row.activeMs / 1000 } };
}
