import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join, sep } from 'node:path';
import { z } from 'zod';
import { accountQueries, type AccountQueries } from '../../../db/queries/accounts.ts';
import { calibrationQueries } from '../../../db/queries/calibrations.ts';
import { noteQueries, type NoteQueries } from '../../../db/queries/runNotes.ts';
import { runQueries, type RunListRow, type RunQueries } from '../../../db/queries/runs.ts';
import { telemetryQueries } from '../../../db/queries/telemetry.ts';
import { seriesQueries, type SeriesQueries } from '../../../db/queries/series.ts';
import type { CostModel } from '../../contract/cost.ts';
import type { CallContext } from '../../contract/channel.ts';
import { counted } from '../../contract/counted.ts';
import { isOnCpu } from '../../contract/device.ts';
import { TesseraError } from '../../contract/errors.ts';
import type { Recipe } from '../../contract/recipe.ts';
import type { PackedRows } from '../../contract/rows.ts';
import {
  runPlan,
  type CheckpointChoice,
  type Preflight,
  type RunDetail,
  type RunFigures,
} from '../../contract/runs.ts';
import type { CoreContext } from '../context.ts';
import type { Home } from '../home.ts';
import type { Log } from '../log.ts';
import { sweepPartials } from '../partials.ts';
import { version } from '../version.ts';
import type { Datasets, DatasetSource } from '../datasets/datasets.ts';
import { chooseDevice, numRanks, readMachine } from '../engine/machine.ts';
import { CalibrationDesk } from './calibration.ts';
import { chooseCheckpoint } from './checkpoints.ts';
import { sweepDeleted, sweepPrepared } from './deletion.ts';
import { hashModel } from './hashModel.ts';
import { forecastRun, type EngineForecast } from './memory.ts';
import { whatFits } from './whatFits.ts';
import { planRun, type PlannedRun, type PlanOptions } from './planRun.ts';
import { judge, usableMemory } from './preflight.ts';
import { ProofDesk, type Proofs } from './proofs.ts';
import { checkRecipe, hashRecipe } from './recipe.ts';
import { RunList } from './runList.ts';
import { openRunData, readSource } from './runData.ts';
import { gpuTotals } from '../telemetry/readTelemetry.ts';
import { moveRunFolder, writeRunFolder } from './runFolder.ts';
import { compileSearch, prepareSearch } from './search/compile.ts';
import { RunSupervisor } from './supervisor.ts';
import { recoverRuns } from './recover.ts';

export interface CreateRequest {
  recipe: Recipe;
  kind: 'train' | 'benchmark';
  maxExamples?: number | undefined;
  /** Times steps first where none is known. */
  measure: boolean;
}

interface PrepareOptions {
  maxExamples?: number | undefined;
  isBenchmark?: boolean;
  measure?: boolean;
}

/** Whose steps are to be known. */
export interface CostQuestion {
  /** An imported dataset's id. */
  dataset: string;
  budget: number;
  gradAccumulation: number;
  measure: boolean;
}

/** Asked for by itself, a measurement may take longer than before a run. */
const explicitSeconds = 8;

/** The runs of a home: preparing, starting and finding them. */
export class Runs {
  readonly queries: RunQueries;
  readonly series: SeriesQueries;
  readonly accounts: AccountQueries;
  readonly notes: NoteQueries;
  readonly supervisor: RunSupervisor;
  private readonly runList: RunList;
  private readonly context: CoreContext;
  private readonly datasets: Datasets;
  readonly calibrations: CalibrationDesk;
  /** What is being measured that nothing may disturb. */
  private measuring: string | undefined;
  private readonly proofs = new ProofDesk();

  constructor(context: CoreContext, datasets: Datasets) {
    this.context = context;
    this.datasets = datasets;
    this.queries = runQueries(context.db);
    // Before anything works on a run: a copy of a home must neither train into nor delete what is the other's.
    const numMoved = this.queries.moveInto(`${context.home.runs}${sep}`);
    if (numMoved > 0) context.log(`the home was elsewhere before: ${counted(numMoved, 'run')} found in it`);
    this.series = seriesQueries(context.db);
    this.accounts = accountQueries(context.db);
    this.notes = noteQueries(context.db);
    this.calibrations = new CalibrationDesk(calibrationQueries(context.db));
    const isCopy = context.history.trouble !== undefined;
    this.runList = new RunList(this.queries, isCopy ? undefined : join(context.home.caches, 'runList.bin'));
    context.onClose(keepReady(this.runList, context.log));
    prepareSearch(context.db);
    this.supervisor = new RunSupervisor({
      notes: this.notes,
      runs: this.queries,
      series: this.series,
      accounts: this.accounts,
      log: context.log,
      work: context.work,
      openData: (recipe, planned) => openRunData(datasets, recipe, backgroundCall, planned),
      onCompleted: ({ device, plan, activeMs }, recipe) => {
        const { steps, bins, positions, tokens, squares } = runPlan.parse(JSON.parse(plan));
        if (device === null || squares === undefined) return;
        const load = { steps, bins, positions, tokens, squares, ranks: numRanks(device) };
        this.calibrations.learn(recipe, device, load, activeMs);
      },
    });
    context.onClose(() => this.supervisor.close());
    // Windows may have read the history before its runs were accounted for.
    const tell = (id: string) => {
      this.supervisor.publishRun(id);
    };
    // A copy that is only shown has no engines to account for.
    if (isCopy) return;
    sweepPartials(context.home, context.log);
    sweepDeleted(this.queries, context.log);
    sweepPrepared(context.home.runs, this.queries, context.log);
    const stores = { runs: this.queries, series: this.series, notes: this.notes };
    void recoverRuns(stores, context, tell).then((waiting) => {
      for (const id of waiting) this.supervisor.enqueue(id);
    });
  }

  get home(): Home {
    return this.context.home;
  }

  /** What is known before a run starts: data, exact steps, memory, kernels, disk. */
  async preflight(recipe: Recipe, call: CallContext): Promise<Preflight> {
    const { preflight, discard } = await this.prepare(recipe, call);
    discard();
    return preflight;
  }

  /** Prepares and queues a run; returns its id. @throws {TesseraError} what the data or the preflight stops at */
  async create({ recipe, kind, maxExamples, measure }: CreateRequest, call: CallContext): Promise<string> {
    const done = this.context.work.begin(`preparing ${recipe.name}`);
    try {
      const { id, folder, device, plan, preflight, discard } = await this.prepare(recipe, call, {
        maxExamples,
        isBenchmark: kind === 'benchmark',
        measure,
      });
      const stop = preflight.items.find(({ status }) => status === 'stop');
      if (plan instanceof Error || stop !== undefined) {
        discard();
        throw plan instanceof Error
          ? plan
          : new TesseraError('preflightStop', `${stop?.name ?? ''}: ${stop?.message ?? ''}`, stop?.hint);
      }
      const { source, planHash, summary } = plan;
      this.queries.insert({
        ...{ id, kind, folder },
        name: recipe.name,
        createdAtMs: Date.now(),
        recipe: JSON.stringify(recipe),
        hashes: JSON.stringify({
          recipe: hashRecipe(recipe),
          dataset: source.datasetHash,
          cache: source.key,
          plan: planHash,
          model: hashModel(recipe.model),
        }),
        codeVersion: version,
        plan: JSON.stringify(summary),
        preflight: JSON.stringify(preflight),
        plannedSteps: summary.steps,
      });
      this.queries.update(id, { device });
      this.supervisor.enqueue(id);
      return id;
    } finally {
      done();
    }
  }

  /** By id, by the beginning of an id, by name, or `latest`. @throws {TesseraError} `noRun`, `ambiguousRun` */
  find(name: string): RunListRow {
    const exact = name === 'latest' ? this.queries.latest() : this.queries.get(name);
    if (exact !== undefined) return exact;
    const [found, ...others] = this.queries.find(name);
    if (found === undefined) {
      if (name === 'latest')
        throw new TesseraError(
          'noRun',
          'there is no latest run: the list is empty',
          'Runs that are not in it are archived or deleted (tessera runs list --archived).',
        );
      throw new TesseraError(
        'noRun',
        `there is no run '${name}'`,
        'See the list of runs (tessera runs list).',
      );
    }
    if (others.length > 0) {
      const ids = [found, ...others].map(({ id }) => id).join(', ');
      throw new TesseraError('ambiguousRun', `'${name}' names several runs: ${ids}`, 'Give the id.');
    }
    return found;
  }

  /** What came of a run beyond its summary. */
  figures(run: RunDetail): RunFigures {
    const { realTokens, positions, bestLoss } = this.series.extremes(run.id);
    const best = run.evaluations.reduce<(typeof run.evaluations)[number] | undefined>(
      (lowest, each) => (lowest === undefined || each.loss < lowest.loss ? each : lowest),
      undefined,
    );
    const profile = profileFigures.safeParse(JSON.parse(this.queries.latestProfile(run.id)?.data ?? '{}'));
    const { launches, memory } = profile.data ?? {};
    return {
      realTokens,
      positions,
      ...(best !== undefined && { bestEvalLoss: best.loss, bestEvalStep: best.step }),
      ...(bestLoss !== null && { bestLoss }),
      ...(launches !== undefined && { launchesPerStep: launches }),
      ...(memory !== undefined && { plannedBytes: memory.planned }),
      ...gpuTotals(telemetryQueries(this.context.db).readTotals(run.id), run.device),
    };
  }

  /** The list, or what a search finds of it, newest first. @throws {TesseraError} `badSearch` */
  list(options: { search?: string | undefined; archived: boolean; deleted: boolean }): PackedRows {
    const { search = '', archived, deleted } = options;
    const shelf = deleted ? 'deleted' : archived ? 'archived' : 'all';
    if (search.trim() === '') return this.runList.all(shelf);
    return this.runList.find(shelf, compileSearch(search, this.queries.hasField));
  }

  /**
   * A paused run goes on; one that stopped or failed is queued again, from its newest checkpoint or the one chosen.
   * What was trained after that is trained again. With `device` it goes on there. @throws {TesseraError} `notResumable`, `noCheckpoint`
   */
  async resume(row: RunListRow, from?: CheckpointChoice, device?: string): Promise<void> {
    if (row.status === 'paused') {
      if (device !== undefined && device !== row.device)
        throw new TesseraError(
          'notResumable',
          `run ${row.name} (${row.id}) is paused on ${row.device ?? 'its device'}`,
          'Stop it first: then it can go on elsewhere.',
        );
      await this.supervisor.command(row, 'resume');
      return;
    }
    const goesBack = from !== undefined && from !== 'newest' && row.status === 'completed';
    if (row.status !== 'stopped' && row.status !== 'failed' && !goesBack) {
      const hint = row.status === 'completed' ? 'Start a new run, with more steps.' : 'It needs no resuming.';
      throw new TesseraError('notResumable', `run ${row.name} (${row.id}) is ${row.status}`, hint);
    }
    const chosen = from === undefined ? undefined : chooseCheckpoint(row, from);
    if (device !== undefined) {
      const { model } = JSON.parse(row.recipe) as Recipe;
      const used = chooseDevice(await readMachine(model), device);
      moveRunFolder(row.folder, used);
      this.queries.update(row.id, { device: used });
    }
    this.queries.update(row.id, {
      ...{ status: 'queued', reason: null, endedAtMs: null },
      ...(chosen && { checkpointStep: chosen.step, checkpointPath: chosen.path }),
    });
    this.supervisor.enqueue(row.id);
  }

  /**
   * A folder with all that the engine reads, and what it and the data say; `discard` removes the folder. Of a benchmark
   * nothing is kept, so nothing has to be proven for it.
   */
  private async prepare(recipe: Recipe, call: CallContext, options: PrepareOptions = {}) {
    const { maxExamples = Infinity, isBenchmark = false, measure = true } = options;
    const machine = await readMachine(recipe.model);
    const device = chooseDevice(machine, recipe.device);
    const id = newRunId();
    const folder = join(this.context.home.runs, id);
    const discard = () => {
      rmSync(folder, { recursive: true, force: true });
    };
    const orError = async <T>(work: Promise<T>): Promise<T | Error> => {
      try {
        return await work;
      } catch (error) {
        if (call.signal.aborted) {
          discard();
          throw error;
        }
        return error instanceof Error ? error : new Error(String(error));
      }
    };
    const plan = await orError(this.plan(recipe, { ranks: numRanks(device), maxExamples }, call));
    let engine: EngineForecast | Error = new Error('unknown without the data');
    let fits: string | undefined;
    let proofs: Proofs | Error | undefined;
    let cost: CostModel | Error | undefined;
    if (!(plan instanceof Error)) {
      writeRunFolder(folder, recipe, device, plan);
      const cache = plan.source.folder;
      const inputs = { folder, model: recipe.model, cache };
      const evalCache = plan.evaluation && plan.evalSource.folder;
      call.progress({ what: 'Planning memory', done: 0 });
      engine = await orError(forecastRun({ ...inputs, evalCache }, call.signal));
      const usable = usableMemory({ machine, device });
      const isTooLarge = !(engine instanceof Error) && (engine.memory.total ?? 0) > usable;
      if (isTooLarge)
        fits = await this.waysToFit({ recipe, device, folder, plan, usable, maxExamples }, call).catch(
          (error: unknown) => {
            discard();
            throw error;
          },
        );
      if (!(engine instanceof Error) && !isBenchmark) {
        call.progress({ what: 'Proving isolation and numerics', done: 0 });
        const { recompute } = engine;
        const { planHash } = plan;
        proofs = await orError(
          this.proofs.prove({ folder, recipe, cache, device, recompute, planHash }, call.signal),
        );
        cost =
          measure && !isTooLarge
            ? await orError(this.costOf({ recipe, device, plan }, call))
            : this.calibrations.find(recipe, device);
      }
    }
    const preflight = judge({
      ...{ recipe, machine, device, plan, proofs, cost, fits },
      memory: engine instanceof Error ? engine : engine.memory,
      ...(!(engine instanceof Error) && {
        checkpointBytes: engine.checkpointBytes,
        sharding: engine.sharding,
        ranksThatWouldDo: engine.ranksThatWouldDo,
      }),
      folder: this.context.home.runs,
    });
    return { id, folder, device, plan, preflight, discard };
  }

  /** Plans a recipe's variants for the engine in a folder of their own, until one fits. */
  private async waysToFit(
    run: {
      recipe: Recipe;
      device: string;
      folder: string;
      plan: PlannedRun;
      usable: number;
      maxExamples: number;
    },
    call: CallContext,
  ): Promise<string | undefined> {
    const { recipe, device, usable, maxExamples } = run;
    const scratch = join(run.folder, 'variant');
    // Variants of one budget share a plan.
    let { plan } = run;
    let { budget } = recipe.packing;
    try {
      return await whatFits(recipe, { freeBytes: usable, onGpu: !isOnCpu(device) }, async (changed) => {
        try {
          if (changed.packing.budget !== budget) {
            plan = await this.plan(changed, { ranks: numRanks(device), maxExamples }, call);
            ({ budget } = changed.packing);
          }
          writeRunFolder(scratch, changed, device, plan);
          const evalCache = plan.evaluation && plan.evalSource.folder;
          const inputs = { folder: scratch, model: changed.model, cache: plan.source.folder, evalCache };
          return (await forecastRun(inputs, call.signal)).memory.total ?? Infinity;
        } catch (error) {
          if (call.signal.aborted) throw error;
          return Infinity; // one that cannot be trained at all is no way out
        }
      });
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  }

  /**
   * What training costs: known, or measured first where `seconds` are given for it.
   * @throws {TesseraError} `runTraining`, `notMeasured`, and what keeps the engine from running steps
   */
  async costOf(
    what: { recipe: Recipe; device: string; plan: PlannedRun },
    call: CallContext,
    seconds = 3,
  ): Promise<CostModel> {
    const known = this.calibrations.find(what.recipe, what.device);
    if (known !== undefined) return known;
    const release = this.holdForMeasuring();
    try {
      call.progress({ what: 'Timing steps', done: 0 });
      const measured = await this.calibrations.measure(what, seconds, call);
      if (measured !== undefined) return measured;
      throw new TesseraError('notMeasured', 'the engine took no step', 'Look into the log of this program.');
    } finally {
      release();
    }
  }

  /** What training costs with a dataset's own model on this machine's best device. */
  async costOfDataset(
    { dataset, budget, gradAccumulation, measure }: CostQuestion,
    call: CallContext,
  ): Promise<{ cost?: CostModel; why?: string }> {
    const { modelDir: model } = JSON.parse(this.datasets.find(dataset).source) as DatasetSource;
    const device = chooseDevice(await readMachine(model), 'auto');
    const { dir, release } = await this.datasets.tokens(dataset, {}, call);
    try {
      const options = { device, gradAccumulation, packing: { budget }, acceptSlow: true };
      const recipe = checkRecipe({ model, dataset, ...options });
      const known = this.calibrations.find(recipe, device);
      if (known !== undefined) return { cost: known };
      if (!measure) return { why: 'No step was timed yet with this model and budget on this device.' };
      const plan = planRun(recipe, readSource(dir), { ranks: numRanks(device) });
      return { cost: await this.costOf({ recipe, device, plan }, call, explicitSeconds) };
    } finally {
      release();
    }
  }

  /**
   * Keeps runs from starting, and with `what` other measurements too.
   * @throws {TesseraError} `runTraining`, `measuring`: it would be measured along
   */
  holdForMeasuring(what?: string): () => void {
    if (this.measuring !== undefined)
      throw new TesseraError('measuring', this.measuring, 'Ask again when it is done.');
    const id = this.supervisor.trainingRun;
    if (!this.supervisor.isTraining) {
      const release = this.supervisor.hold();
      this.measuring = what;
      return () => {
        if (what !== undefined) this.measuring = undefined;
        release();
      };
    }
    throw new TesseraError(
      'runTraining',
      `run ${this.queries.get(id ?? '')?.name ?? ''} trains, and steps timed beside it would be too slow`,
      'Ask again when it has ended.',
    );
  }

  private async plan(recipe: Recipe, options: PlanOptions, call: CallContext): Promise<PlannedRun> {
    const data = await openRunData(this.datasets, recipe, call);
    try {
      return planRun(recipe, data.train, { ...options, evalSource: data.evaluation });
    } finally {
      data.release();
    }
  }
}

const profileFigures = z.object({
  launches: z.number().optional(),
  memory: z.object({ planned: z.number() }).optional(),
});

/** Time for whoever started the core to ask first. */
const readyAfterMs = 1000;

/** Reads the list before it is asked for, and keeps it for the next core; returns what does so when this one closes. */
function keepReady(list: RunList, log: Log): () => void {
  const save = () => {
    try {
      list.save();
    } catch (error) {
      log(`the list of runs is not kept for the next start: ${String(error)}`);
    }
  };
  const timer = setTimeout(() => {
    list.all('all');
    save();
  }, readyAfterMs);
  return () => {
    clearTimeout(timer);
    save();
  };
}

/** Sorts by time; the tail keeps two runs of one second apart. */
function newRunId(): string {
  const stamp = new Date().toISOString().replace(/[-:]/g, '').slice(2, 15).replace('T', '-');
  return `${stamp}-${randomBytes(3).toString('hex')}`;
}

const backgroundCall: CallContext = { signal: new AbortController().signal, progress: () => undefined };
