import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { RunListRow } from '../../../db/queries/runs.ts';
import { TesseraError, toErrorBody } from '../../contract/errors.ts';
import type { Recipe } from '../../contract/recipe.ts';
import type { RunUpdate } from '../../contract/runs.ts';
import type { Work } from '../context.ts';
import type { EngineCommand } from '../engine/protocol.ts';
import { ActiveRun, type RunStores } from './activeRun.ts';
import { summarise } from './describe.ts';
import { Emitter } from '../emitter.ts';
import { hashModel } from './hashModel.ts';
import { checkPlan, readPlan } from '../packing/planFile.ts';
import type { TokenSource } from './planRun.ts';
import type { RunData } from './runData.ts';
import { runFiles } from './runFolder.ts';
import { checkRecipe } from './recipe.ts';
import { prepareSamples } from './samples.ts';

interface SupervisorParts extends Omit<RunStores, 'publish'> {
  work: Work;
  /** Finds the tokens that a run was planned for, by their cache's key, or makes them again. */
  openData: (recipe: Recipe, planned: string) => Promise<RunData>;
  /** A run has completed. */
  onCompleted: (row: RunListRow, recipe: Recipe) => void;
}

/** Trains queued runs one after the other, and takes commands for the one that trains. */
export class RunSupervisor {
  readonly updates = new Emitter<RunUpdate>();
  private readonly stores: RunStores;
  private readonly work: Work;
  private readonly openData: SupervisorParts['openData'];
  private readonly onCompleted: SupervisorParts['onCompleted'];
  private readonly queue: string[] = [];
  private active: ActiveRun | undefined;
  /** Its data is looked up, or made again, before an engine gets it. */
  private starting: string | undefined;
  private readonly cancelled = new Set<string>();
  private isClosing = false;
  private numHolds = 0;

  constructor({ runs, series, accounts, notes, log, work, openData, onCompleted }: SupervisorParts) {
    this.work = work;
    this.openData = openData;
    this.onCompleted = onCompleted;
    this.stores = {
      ...{ runs, series, accounts, notes, log },
      publish: (update) => {
        this.updates.emit(update);
      },
    };
  }

  /** The run that an engine works on now. */
  get trainingRun(): string | undefined {
    return this.active?.id;
  }

  /** Whether an engine works or is about to. */
  get isTraining(): boolean {
    return this.starting !== undefined || this.active !== undefined;
  }

  /** While something is measured that a run would disturb, runs wait in the queue. Returns what lets them go on. */
  hold(): () => void {
    this.numHolds += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.numHolds -= 1;
      this.startNext();
    };
  }

  enqueue(id: string): void {
    this.queue.push(id);
    this.publishRun(id);
    this.startNext();
  }

  /** Tells who watches how a run is now. */
  publishRun(id: string): void {
    const row = this.stores.runs.get(id);
    if (row !== undefined) this.updates.emit({ kind: 'run', run: summarise(row) });
  }

  /** @throws {TesseraError} `runNotActive` */
  async command(row: RunListRow, command: EngineCommand): Promise<void> {
    if (this.active?.id === row.id) {
      await this.active.command(command);
      return;
    }
    const waiting = this.queue.indexOf(row.id);
    if (command === 'stop' && (waiting >= 0 || this.starting === row.id)) {
      if (waiting >= 0) this.queue.splice(waiting, 1);
      else this.cancelled.add(row.id);
      this.stores.runs.update(row.id, {
        status: 'stopped',
        reason: 'stopped before it started',
        endedAtMs: Date.now(),
      });
      this.publishRun(row.id);
      return;
    }
    const isQueued = waiting >= 0 || this.starting === row.id;
    throw new TesseraError(
      'runNotActive',
      `run ${row.name} (${row.id}) is ${row.status}`,
      isQueued
        ? 'It waits for its turn or its data; stop takes it out.'
        : command === 'stop'
          ? 'There is nothing to stop.'
          : 'Resume it first.',
    );
  }

  /** The core ends: the engine saves and exits, what waits stays queued for the next core. */
  async close(): Promise<void> {
    this.isClosing = true;
    try {
      await this.active?.stop(15_000);
    } catch {
      // It cannot save, and the core cannot wait for room on the disk: what its last checkpoint holds is kept.
      await this.active?.stop(2_000);
    }
  }

  private startNext(): void {
    if (this.starting !== undefined || this.active !== undefined || this.isClosing || this.numHolds > 0)
      return;
    const id = this.queue.shift();
    const row = id === undefined ? undefined : this.stores.runs.get(id);
    if (row === undefined) return;
    this.starting = row.id;
    const done = this.work.begin(`training ${row.name}`);
    void this.train(row)
      .catch((error: unknown) => {
        if (this.cancelled.has(row.id)) return;
        const failure = toErrorBody(error);
        const atMs = Date.now();
        this.stores.log(`run ${row.id}: ${failure.message}`);
        this.stores.runs.update(row.id, { status: 'failed', reason: failure.message, endedAtMs: atMs });
        // The way out is kept as that of an engine's failure is.
        const { code, message, hint } = failure;
        const event = { atMs, step: row.steps, kind: 'failed' };
        const data = { code, message, ...(hint !== undefined && { hint }) };
        this.stores.runs.addEvent(row.id, { ...event, data: JSON.stringify(data) });
        this.stores.publish({ kind: 'event', runId: row.id, event: { ...event, data } });
      })
      .finally(() => {
        this.active = undefined;
        this.starting = undefined;
        this.cancelled.delete(row.id);
        this.publishRun(row.id);
        this.startNext();
        done();
      });
  }

  /** From tokens to the engine's end. @throws what keeps the engine from starting */
  private async train(row: RunListRow): Promise<void> {
    // Older recipes lack what was added since.
    const stored = checkRecipe(JSON.parse(row.recipe), 'the stored recipe');
    const recipe = { ...stored, model: modelFor(row, stored.model) };
    const { cache } = JSON.parse(row.hashes) as { cache: string };
    const data = await this.openData(recipe, cache);
    try {
      checkUnchanged(row, cache, data);
      const { plan, evalPlan } = runFiles(row.folder);
      const hasEvaluation = existsSync(evalPlan);
      checkStoredPlan(plan, data.train);
      if (hasEvaluation) checkStoredPlan(evalPlan, data.evaluation ?? data.train);
      const samples = await prepareSamples(recipe, row.folder);
      if (this.cancelled.has(row.id)) return;
      const inputs = {
        folder: row.folder,
        model: recipe.model,
        cache: data.train.folder,
        evalCache: hasEvaluation ? (data.evaluation ?? data.train).folder : undefined,
        hasSamples: samples !== undefined,
        resume: row.checkpointPath ?? undefined,
      };
      const publish = (id: string) => {
        this.publishRun(id);
      };
      this.active = new ActiveRun(row, inputs, this.stores, publish, samples);
      this.publishRun(row.id);
      await this.active.ended;
      const ended = this.stores.runs.get(row.id);
      if (ended?.status === 'completed') this.onCompleted(ended, recipe);
    } finally {
      data.release();
      // What a benchmark trained is of no use; its measurements are in the history.
      if (row.kind === 'benchmark') rmSync(row.folder, { recursive: true, force: true });
    }
  }
}

/**
 * The folder of the model: of a run that goes on from a checkpoint, where the folder that it began with is gone or holds
 * another model by now, the checkpoint itself, which is a whole model folder.
 */
function modelFor({ hashes, checkpointPath }: RunListRow, model: string): string {
  if (checkpointPath === null || !existsSync(join(checkpointPath, 'config.json'))) return model;
  const began = (JSON.parse(hashes) as { model?: string }).model;
  const isThere = existsSync(join(model, 'config.json'));
  return isThere && (began === undefined || hashModel(model) === began) ? model : checkpointPath;
}

/** A plan lies on disk between preflight and start, and between a stop and its resume: it must be whole, and of these tokens. */
function checkStoredPlan(path: string, { key, lengths }: TokenSource): void {
  checkPlan(path, readPlan(path), key, lengths);
}

/** The plan names examples by number: with other tokens it would train on something else. */
function checkUnchanged(row: RunListRow, cache: string, data: RunData): void {
  if (cache === data.train.key) return;
  throw new TesseraError(
    'dataChanged',
    `the data of run ${row.name} (${row.id}) is no longer what it was planned for`,
    'Start a new run.',
  );
}
