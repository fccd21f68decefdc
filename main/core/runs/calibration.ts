import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import type { CalibrationQueries } from '../../../db/queries/calibrations.ts';
import type { CallContext } from '../../contract/channel.ts';
import { counted } from '../../contract/counted.ts';
import type { CostModel, Load } from '../../contract/cost.ts';
import { isOnCpu } from '../../contract/device.ts';
import type { Recipe } from '../../contract/recipe.ts';
import { engineBinary } from '../engine/binary.ts';
import { numRanks } from '../engine/machine.ts';
import {
  calibrate,
  confirm,
  fewestShapes,
  type MeasuredRun,
  type MeasuredStep,
} from '../packing/forecast.ts';
import { alikeForRanks, measuringPlan, stepsOfPass, type MeasuringPlan } from '../packing/measuringPlan.ts';
import { writePlan } from '../packing/planFile.ts';
import { version } from '../version.ts';
import { hashModel } from './hashModel.ts';
import { measureSteps, type StepMeasurement } from './measureSteps.ts';
import type { PlannedRun } from './planRun.ts';
import { fileStamp } from './proofs.ts';
import { runFiles } from './runFolder.ts';

const stored = z.object({
  fixedShapes: z.boolean(),
  accumulates: z.boolean(),
  contention: z.number(),
  steps: z.array(
    z.object({
      bins: z.number(),
      positions: z.number(),
      tokens: z.number(),
      squares: z.number(),
      shape: z.number(),
      milliseconds: z.number(),
    }),
  ),
});

/** Rounds over the shapes: more would tell little that a run does not tell better. */
const mostPasses = 5;
const keptRuns = 8;

/**
 * What a step costs, by model, device, budget, engine and kernels: timed for a few seconds where nothing is known, and
 * corrected by every run that completes. Measurements wait for one another, since each would slow the other down.
 */
export class CalibrationDesk {
  private readonly queries: CalibrationQueries;
  private last: Promise<unknown> = Promise.resolve();

  constructor(queries: CalibrationQueries) {
    this.queries = queries;
  }

  /** Undefined where nothing was measured yet. */
  find(recipe: Recipe, device: string): CostModel | undefined {
    const row = this.queries.find(keyOf(recipe, device));
    if (row === undefined) return undefined;
    const { steps, ...options } = stored.parse(JSON.parse(row.measured));
    const costs = calibrate(steps, options);
    if (costs === undefined) return undefined;
    return { ...confirm(costs, JSON.parse(row.runs) as MeasuredRun[]), device, atMs: row.atMs };
  }

  /**
   * Times steps of many shapes, made of a plan's examples, for about so many seconds.
   * @throws {TesseraError} what keeps the engine from running them
   */
  async measure(
    { recipe, device, plan }: { recipe: Recipe; device: string; plan: PlannedRun },
    seconds: number,
    call: CallContext,
  ): Promise<CostModel | undefined> {
    return this.alone(
      // Whoever waited may find what it wants.
      async () => this.find(recipe, device) ?? (await this.run(recipe, device, plan, seconds, call)),
    );
  }

  /** Work that measures, when what was measured before has ended. */
  async alone<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.last.catch(() => undefined).then(work);
    this.last = mine;
    return mine;
  }

  /** A run has completed: its steps say how fast this machine really is. */
  learn(recipe: Recipe, device: string, load: Load, milliseconds: number): void {
    const key = keyOf(recipe, device);
    const row = this.queries.find(key);
    if (row === undefined || !(milliseconds > 0)) return;
    const runs = [{ load, milliseconds }, ...(JSON.parse(row.runs) as MeasuredRun[])].slice(0, keptRuns);
    this.queries.setRuns(key, JSON.stringify(runs), Date.now());
  }

  private async run(
    recipe: Recipe,
    device: string,
    plan: PlannedRun,
    seconds: number,
    { signal, progress }: CallContext,
  ): Promise<CostModel | undefined> {
    const accumulates = recipe.gradAccumulation > 1;
    const { firstTarget } = plan.source;
    const measuring = measuringPlan(plan.train, accumulates, isOnCpu(device) ? firstTarget : undefined);
    const contention = waitingShare();
    const folder = mkdtempSync(join(tmpdir(), 'tessera-measure-'));
    try {
      const files = runFiles(folder);
      const { gradAccumulation } = measuring;
      writeFileSync(files.recipe, JSON.stringify({ ...recipe, device, gradAccumulation }));
      writePlan(files.plan, alikeForRanks(measuring, numRanks(device)), plan.source.key);
      const inputs = { folder, model: recipe.model, cache: plan.source.folder };
      const limits = { seconds, passes: mostPasses };
      let numSteps = 0;
      const onProgress = ({ done, total }: { done: number; total?: number | undefined }) => {
        const detail = counted((numSteps += 1), 'step');
        progress({ what: 'Timing steps', done, ...(total !== undefined && { total }), unit: 's', detail });
      };
      const measured = await measureSteps(inputs, limits, { signal, onProgress });
      const steps = withoutSmall(stepsOf(measuring, measured.steps), measuring.numSmall);
      const { fixedShapes } = measured;
      const value: z.infer<typeof stored> = { fixedShapes, accumulates, contention, steps };
      const key = keyOf(recipe, device);
      this.queries.put({ key, device, atMs: Date.now(), measured: JSON.stringify(value) });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    return this.find(recipe, device);
  }
}

function stepsOf(measuring: MeasuringPlan, measured: StepMeasurement['steps']): MeasuredStep[] {
  const shapes = stepsOfPass(measuring);
  return measured.flatMap(({ milliseconds }, i) => {
    const shape = shapes[i % shapes.length];
    return shape === undefined ? [] : [{ ...shape, milliseconds }];
  });
}

/** What small steps cost says less of a run than what large ones do: they count where there are few others. */
function withoutSmall(steps: MeasuredStep[], numSmall: number): MeasuredStep[] {
  const large = steps.filter(({ shape }) => shape >= numSmall);
  return new Set(large.map(({ shape }) => shape)).size >= fewestShapes ? large : steps;
}

/** All that a step's cost depends on beside what is in its bins. */
function keyOf(recipe: Recipe, device: string): string {
  const {
    model,
    packing,
    kernels = 'fast',
    precision,
    recompute,
    sharding,
    optimizer,
    gradAccumulation,
  } = recipe;
  return JSON.stringify({
    ...{ device, model: hashModel(model), budget: packing.budget, kernels, precision, recompute, sharding },
    ...{ optimizer: optimizer.mode, gradients: optimizer.gradients, accumulates: gradAccumulation > 1 },
    engine: `${version} ${fileStamp(engineBinary())}`,
    processor: process.env.TESSERA_CPU ?? '',
  });
}

/** Share of the last minute in which some program waited for a processor (0 where the system does not say). */
function waitingShare(): number {
  try {
    const percent = /^some .*avg60=([\d.]+)/m.exec(readFileSync('/proc/pressure/cpu', 'utf8'))?.[1];
    return Math.min(1, Number(percent ?? 0) / 100);
  } catch {
    return 0;
  }
}
