import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { runQueries } from '../../db/queries/runs.ts';
import { seriesQueries } from '../../db/queries/series.ts';
import { untilAborted } from '../../main/contract/channel.ts';
import { contract } from '../../main/contract/index.ts';
import type { Port } from '../../main/contract/port.ts';
import type { RunUpdate } from '../../main/contract/runs.ts';
import { serve } from '../../main/contract/server.ts';
import { createWork } from '../../main/core/context.ts';
import { createHandlers } from '../../main/core/handlers.ts';
import { openHistory } from '../../main/core/history.ts';
import { openHome } from '../../main/core/home.ts';
import { socketPort } from '../../main/core/ports.ts';
import { checkRecipe } from '../../main/core/runs/recipe.ts';
import { RunRecorder } from '../../main/core/runs/recorder.ts';

const log = () => undefined;
const mostAtOnce = 256;

/**
 * A home's core but for where its steps come from: handlers, database, recorder and socket are the real ones, and
 * `train` makes steps of one run as fast as asked, in the rhythm of a timer.
 * @param portOf the link over a client's socket, for whoever wants to look into it
 */
export async function openFedCore(
  homePath: string,
  plannedSteps: number,
  portOf: (socket: Socket) => Port = socketPort,
) {
  const home = openHome(homePath);
  const history = await openHistory(home.database, log, false);
  const { db } = history;
  const handlers = createHandlers({
    ...{ home, db, history, log, work: createWork(log) },
    ...{ onClose: log, closeSoon: log },
  });
  const runId = 'live';
  const runs = runQueries(db);
  runs.insert(liveRun(runId, join(home.runs, runId), plannedSteps));
  runs.update(runId, { device: 'cpu', status: 'running', startedAtMs: Date.now() });

  const listeners = new Set<(update: RunUpdate) => void>();
  const watched: typeof handlers = {
    ...handlers,
    'runs:watch': async (_args, emit, signal) => {
      listeners.add(emit);
      await untilAborted(signal);
      listeners.delete(emit);
    },
  };
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    serve(contract, watched, portOf(socket));
  });
  await new Promise<void>((resolve) => server.listen(home.socket, resolve));

  const recorder = new RunRecorder(runId, runs, seriesQueries(db), { onFlush: log });
  let step = 0;
  async function train(stepsPerSecond: number, seconds: number): Promise<void> {
    const startedMs = performance.now();
    const before = step;
    for (;;) {
      const elapsed = (performance.now() - startedMs) / 1000;
      const due = before + Math.floor(Math.min(elapsed, seconds) * stepsPerSecond);
      // Behind its rate it still takes turns with its readers.
      const last = Math.min(due, step + mostAtOnce);
      while (step < last) {
        step += 1;
        const taken = recorder.step(stepOf(step, stepsPerSecond));
        for (const emit of listeners) emit({ kind: 'step', runId, step: taken });
      }
      if (elapsed >= seconds && step === due) return;
      await new Promise((resolve) => setTimeout(resolve, step < due ? 0 : 8));
    }
  }

  return {
    runId,
    /** The newest step so far. */
    step: () => step,
    train,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      recorder.flush();
      db.close();
    },
  };
}

function stepOf(step: number, stepsPerSecond: number) {
  const spike = step % 997 === 0 ? 3 : 0;
  return {
    step,
    atMs: Date.now(),
    loss: 2 + 3 / Math.sqrt(step) + spike + 0.1 * Math.sin(step),
    gradNorm: 0.5 + 0.2 * Math.cos(step / 3),
    learningRate: 1e-4,
    supervisedTokens: 1000,
    realTokens: 2000,
    positions: 2048,
    milliseconds: 1000 / stepsPerSecond,
    flops: 1e9,
    elapsedMs: (step * 1000) / stepsPerSecond,
  };
}

function liveRun(id: string, folder: string, plannedSteps: number) {
  const plan = {
    ...{ strategy: 'best-fit', budget: 2048, examples: 1000, evalExamples: 0, bins: 100, fill: 0.98 },
    ...{ steps: plannedSteps, tokens: 200_000, positions: 204_800 },
    dropped: { overlong: 0, nothingToLearn: 0 },
    truncated: { examples: 0, tokens: 0 },
  };
  return {
    ...({ id, kind: 'train', folder, name: 'live', createdAtMs: Date.now() } as const),
    recipe: JSON.stringify(checkRecipe({ model: 'bundled', dataset: 'bundled', name: 'live' })),
    hashes: JSON.stringify({ recipe: '', dataset: '', cache: '', plan: '', model: '' }),
    codeVersion: null,
    plan: JSON.stringify(plan),
    preflight: JSON.stringify({ ok: true, items: [], steps: plannedSteps, memory: {}, seconds: 1 }),
    plannedSteps,
  };
}
