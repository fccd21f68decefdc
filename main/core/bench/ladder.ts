import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { LadderQueries } from '../../../db/queries/ladders.ts';
import { ladder, type benchChannels, type Ladder } from '../../contract/bench.ts';
import type { CallContext, Handlers } from '../../contract/channel.ts';
import { bundled } from '../bundled.ts';
import type { CoreContext } from '../context.ts';
import type { Datasets } from '../datasets/datasets.ts';
import { chooseDevice, readMachine } from '../engine/machine.ts';
import { measureSteps, type StepMeasurement } from '../runs/measureSteps.ts';
import { planRun } from '../runs/planRun.ts';
import { checkRecipe } from '../runs/recipe.ts';
import { openRunData } from '../runs/runData.ts';
import { writeRunFolder } from '../runs/runFolder.ts';
import type { Runs } from '../runs/runs.ts';
import { version } from '../version.ts';
import { ladderFigures } from './ladderFigures.ts';

/** The published order: each rung changes one thing. */
const rungs = [
  { kernels: 'reference', strategy: 'padded', title: 'reference kernels, padded' },
  { kernels: 'fast', strategy: 'padded', title: 'fast kernels, padded' },
  { kernels: 'fast', strategy: 'best-fit', title: 'fast kernels, packed' },
] as const;

const usualRounds = 3;
const usualSeconds = 50;
/** One pass ends it; this only ends an engine that never would. */
const longestPassSeconds = 3600;

type Options = Parameters<Handlers<typeof benchChannels>['bench:ladder']>[0];

/** What kernels and packing gain on this machine: measured on request, kept in the history. */
export class LadderBench {
  private readonly context: CoreContext;
  private readonly datasets: Datasets;
  private readonly runs: Runs;
  private readonly queries: LadderQueries;

  constructor(context: CoreContext, datasets: Datasets, runs: Runs, queries: LadderQueries) {
    this.context = context;
    this.datasets = datasets;
    this.runs = runs;
    this.queries = queries;
  }

  newest(limit: number): Ladder[] {
    return this.queries
      .newest(limit)
      .map(({ id, atMs, data }) => ladder.parse({ ...(JSON.parse(data) as object), id, atMs }));
  }

  /** @throws {TesseraError} `runTraining`, what the data are refused for, and what keeps an engine from running */
  async measure(options: Options, call: CallContext): Promise<Ladder> {
    const release = this.runs.holdForMeasuring('the ladder is being measured');
    const done = this.context.work.begin('measuring the ladder');
    const folder = mkdtempSync(join(tmpdir(), 'tessera-ladder-'));
    try {
      return await this.runs.calibrations.alone(() => this.climb(options, folder, call));
    } finally {
      rmSync(folder, { recursive: true, force: true });
      done();
      release();
    }
  }

  private async climb(options: Options, folder: string, call: CallContext): Promise<Ladder> {
    const { budget, examples, rounds = usualRounds } = options;
    const startedAtMs = performance.now();
    const model = options.model ?? bundled().model;
    const machine = await readMachine(model);
    const device = chooseDevice(machine, options.device);
    const dataset = options.dataset ?? bundled().samples;
    const common = { name: 'ladder', model, dataset, device, packing: { budget }, acceptSlow: true };
    const data = await openRunData(this.datasets, checkRecipe(common), call);
    try {
      const stages = rungs.map(({ kernels, strategy, title }, i) => {
        const recipe = checkRecipe({ ...common, kernels, packing: { budget, strategy } });
        const place = join(folder, String(i));
        const plan = planRun(recipe, data.train, { maxExamples: examples });
        writeRunFolder(place, recipe, device, plan);
        return { kernels, strategy, title, place, fill: plan.summary.fill, used: plan.summary.examples };
      });
      const measured = stages.map((stage) => ({ ...stage, rounds: [] as StepMeasurement[] }));
      for (let round = 0; round < rounds; round++) {
        const spent = (performance.now() - startedAtMs) / 1000;
        const isShort = options.rounds === undefined && round > 0;
        if (isShort && (spent * (round + 1)) / round > usualSeconds) break;
        // There and back again: a machine that grows slower or faster favours no rung.
        const order = round % 2 === 0 ? measured : [...measured].reverse();
        for (const [i, stage] of order.entries()) {
          const what = `${stage.title} (round ${round + 1} of ${rounds})`;
          call.progress({ what, done: round * rungs.length + i, total: rounds * rungs.length });
          const inputs = { folder: stage.place, model, cache: data.train.folder };
          const limits = { seconds: longestPassSeconds, passes: 1 };
          stage.rounds.push(await measureSteps(inputs, limits, { signal: call.signal }));
        }
      }
      return this.keep({
        ...{ device, version, budget, rounds: measured[0]?.rounds.length ?? 0 },
        ...nameOf(machine.devices.find((each) => each.device === device)?.name),
        model: basename(model),
        dataset: basename(dataset),
        examples: stages[0]?.used ?? 0,
        seconds: (performance.now() - startedAtMs) / 1000,
        ...ladderFigures(measured),
      });
    } finally {
      data.release();
    }
  }

  private keep(result: Omit<Ladder, 'id' | 'atMs'>): Ladder {
    const atMs = Date.now();
    return { ...result, atMs, id: this.queries.add(atMs, JSON.stringify(result)) };
  }
}

function nameOf(deviceName: string | undefined): Pick<Ladder, 'deviceName'> {
  return deviceName === undefined ? {} : { deviceName };
}

export function benchHandlers(bench: LadderBench): Handlers<typeof benchChannels> {
  return {
    'bench:ladder': async (options, call) => ({ ladder: await bench.measure(options, call) }),
    'bench:ladders': ({ limit }) => ({ ladders: bench.newest(limit) }),
  };
}
