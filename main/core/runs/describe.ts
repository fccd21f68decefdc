import type { EvaluationRow, EventRow, RunListRow } from '../../../db/queries/runs.ts';
import {
  preflight,
  runHashes,
  runPlan,
  type RunDetail,
  type RunStatus,
  type RunSummary,
} from '../../contract/runs.ts';

/** A row of the database as the contract shows it. */
export function summarise(row: RunListRow): RunSummary {
  return {
    id: row.id,
    name: row.name,
    status: row.status as RunStatus,
    ...(row.reason !== null && { reason: row.reason }),
    steps: row.steps,
    plannedSteps: row.plannedSteps,
    ...(row.firstLoss !== null && { firstLoss: row.firstLoss }),
    ...(row.lastLoss !== null && { lastLoss: row.lastLoss }),
    ...(row.evalLossBefore !== null && { evalLossBefore: row.evalLossBefore }),
    ...(row.evalLossAfter !== null && { evalLossAfter: row.evalLossAfter }),
    ...(row.tokensPerSecond !== null && { tokensPerSecond: row.tokensPerSecond }),
    createdAtMs: row.createdAtMs,
    ...(row.startedAtMs !== null && { startedAtMs: row.startedAtMs }),
    ...(row.endedAtMs !== null && { endedAtMs: row.endedAtMs }),
    archived: row.archivedAtMs !== null,
    tags: JSON.parse(row.tags) as string[],
  };
}

export function describe(row: RunListRow, events: EventRow[], evaluations: EvaluationRow[]): RunDetail {
  return {
    ...summarise(row),
    recipe: JSON.parse(row.recipe) as Record<string, unknown>,
    hashes: runHashes.parse(JSON.parse(row.hashes)),
    plan: runPlan.parse(JSON.parse(row.plan)),
    ...(row.device !== null && { device: row.device }),
    kernels: JSON.parse(row.kernels ?? '[]') as Record<string, unknown>[],
    ...(row.preflight !== null && { preflight: preflight.parse(JSON.parse(row.preflight)) }),
    events: events.map(({ atMs, step, kind, data }) => ({
      atMs,
      ...(step !== null && { step }),
      kind,
      data: JSON.parse(data) as Record<string, unknown>,
    })),
    evaluations,
    ...(row.checkpointStep !== null && { checkpointStep: row.checkpointStep }),
    activeMs: row.activeMs,
    folder: row.folder,
    notes: row.notes,
  };
}
