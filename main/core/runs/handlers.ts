import { untilAborted, type Handlers } from '../../contract/channel.ts';
import { TesseraError } from '../../contract/errors.ts';
import type { runChannels, RunSummary } from '../../contract/runs.ts';
import { compareRuns, explainSpeed } from './compare.ts';
import { describe, summarise } from './describe.ts';
import { exportRun } from './exportRun.ts';
import { generate } from './generate.ts';
import { reportRuns } from './report/report.ts';
import { withBundled } from './recipe.ts';
import type { Runs } from './runs.ts';
import { searchRuns } from './search.ts';

export function runHandlers(runs: Runs): Handlers<typeof runChannels> {
  const { queries, series, supervisor } = runs;
  const summary = (id: string): RunSummary => summarise(runs.find(id));
  const detail = (name: string) => {
    const row = runs.find(name);
    return describe(row, queries.events(row.id), queries.evaluations(row.id));
  };
  return {
    'runs:preflight': ({ recipe }, call) => runs.preflight(withBundled(recipe), call),
    'runs:create': async ({ recipe, kind, maxExamples }, call) => {
      return { run: summary(await runs.create({ recipe: withBundled(recipe), kind, maxExamples }, call)) };
    },
    'runs:list': ({ search, archived }) => {
      const rows = queries.list().filter((row) => archived || row.archivedAtMs === null);
      return { runs: searchRuns(rows, search).map(summarise) };
    },
    'runs:show': ({ id }) => ({ run: detail(id) }),
    'runs:command': async ({ id, command }) => {
      const row = runs.find(id);
      await supervisor.command(row, command);
      return { run: summary(row.id) };
    },
    'runs:resume': async ({ id }) => {
      const row = runs.find(id);
      await runs.resume(row);
      return { run: summary(row.id) };
    },
    'runs:series': ({ ids, metric, maxPoints, fromStep, toStep }) => ({
      series: ids.map((name) => {
        const { id: runId } = runs.find(name);
        return { runId, metric, ...series.read(runId, metric, maxPoints, fromStep, toStep) };
      }),
    }),
    'runs:tag': ({ id, tags }) => {
      queries.addTags(runs.find(id).id, tags);
      return { ok: true };
    },
    'runs:note': ({ id, text }) => {
      queries.update(runs.find(id).id, { notes: text });
      return { ok: true };
    },
    'runs:archive': ({ ids, archived }) => {
      for (const row of ids.map((id) => runs.find(id))) {
        queries.update(row.id, { archivedAtMs: archived ? Date.now() : null });
      }
      return { ok: true };
    },
    'runs:compare': ({ ids, whole, pair }) => {
      const compared = compareRuns(ids.map(detail));
      const two = pair.map((index) => compared.results[index]);
      return { ...compared, ...explainSpeed([two[0], two[1]], runs.accounts.of, whole) };
    },
    'runs:profile': ({ id }) => {
      const row = runs.find(id);
      const stored = queries.latestProfile(row.id);
      if (stored === undefined) {
        const hint = 'Profile a step while it trains, or set profileAtStep in the recipe.';
        throw new TesseraError('noProfile', `run ${row.name} (${row.id}) has no profile`, hint);
      }
      return { profile: JSON.parse(stored.data) as Record<string, unknown> };
    },
    'runs:report': ({ ids }) => ({
      html: reportRuns(ids.map((id) => ({ run: detail(id), steps: series.steps(runs.find(id).id) }))),
    }),
    'runs:export': ({ id, folder }) => ({ files: exportRun(runs.find(id), folder) }),
    'runs:generate': (args, call) => generate(runs, args, call),
    'runs:watch': async ({ id: name }, emit, signal) => {
      const id = name === undefined ? undefined : runs.find(name).id;
      const stop = supervisor.updates.listen((update) => {
        if (id === undefined || id === (update.kind === 'run' ? update.run.id : update.runId)) emit(update);
      });
      if (id !== undefined) emit({ kind: 'run', run: summary(id) });
      await untilAborted(signal);
      stop();
    },
  };
}
