import { fineRows } from '../../../db/queries/series.ts';
import { untilAborted, type Handlers } from '../../contract/channel.ts';
import { TesseraError } from '../../contract/errors.ts';
import type { runChannels, RunSummary } from '../../contract/runs.ts';
import { sumAccounts } from './account.ts';
import { compareRuns, explainSpeed } from './compare.ts';
import { describe, summarise } from './describe.ts';
import { exportRun } from './exportRun.ts';
import { generate } from './generate.ts';
import { readProfile } from './profile/readProfile.ts';
import { chromeTrace } from './profile/trace.ts';
import { reportRuns } from './report/report.ts';
import { withBundled } from './recipe.ts';
import type { Runs } from './runs.ts';
import { searchFieldNames } from './search/fields.ts';
import { compileSearch } from './search/compile.ts';
import { listCheckpoints } from './checkpoints.ts';
import { deleteRuns } from './deletion.ts';

/** Of a curve in a report: however long the run, its extremes are kept. */
const reportPoints = 2000;

export function runHandlers(runs: Runs): Handlers<typeof runChannels> {
  const { queries, series, notes, supervisor } = runs;
  const summary = (id: string): RunSummary => summarise(runs.find(id));
  const detail = (name: string) => {
    const row = runs.find(name);
    return describe(row, {
      events: queries.events(row.id),
      evaluations: queries.evaluations(row.id),
      timeNotes: notes.notes(row.id),
      samples: notes.samples(row.id),
    });
  };
  const profileOf = (name: string) => {
    const run = detail(name);
    const stored = queries.latestProfile(run.id);
    if (stored === undefined) {
      const hint = 'Every run profiles a step by itself; resume it, or profile a step while it trains.';
      throw new TesseraError('noProfile', `run ${run.name} (${run.id}) has no profile`, hint);
    }
    return readProfile(stored.data, run, sumAccounts(runs.accounts.of(run.id)));
  };
  return {
    'runs:preflight': ({ recipe }, call) => runs.preflight(withBundled(recipe), call),
    'runs:create': async ({ recipe, ...rest }, call) => {
      return { run: summary(await runs.create({ recipe: withBundled(recipe), ...rest }, call)) };
    },
    'runs:list': (options) => ({ runs: runs.list(options) }),
    'runs:search-fields': () => ({ fields: searchFieldNames() }),
    'runs:searches': () => ({ searches: notes.savedSearches().map(({ name, query }) => ({ name, query })) }),
    'runs:save-search': ({ name, query }) => {
      if (query.trim() === '') notes.removeSearch(name);
      else {
        // A search that cannot be run is not kept.
        compileSearch(query, queries.hasField);
        notes.saveSearch(name, query, Date.now());
      }
      return { ok: true };
    },
    'runs:show': ({ id }) => ({ run: detail(id) }),
    'runs:command': async ({ id, command }) => {
      const row = runs.find(id);
      await supervisor.command(row, command);
      return { run: summary(row.id) };
    },
    'runs:resume': async ({ id, from, device }) => {
      const row = runs.find(id);
      await runs.resume(row, from, device);
      return { run: summary(row.id) };
    },
    'runs:checkpoints': ({ id }) => ({ checkpoints: listCheckpoints(runs.find(id)) }),
    'runs:series': ({ ids, metric, maxPoints, fromStep, toStep, axis }) => ({
      series: ids.map((name) => {
        const { id: runId } = runs.find(name);
        const range = {
          axis,
          maxRows: fineRows / ids.length,
          ...(fromStep !== undefined && { fromStep }),
          ...(toStep !== undefined && { toStep }),
        };
        return { runId, metric, ...series.read(runId, metric, maxPoints, range) };
      }),
    }),
    'runs:tag': ({ id, tags }) => {
      const row = runs.find(id);
      queries.addTags(row.id, tags);
      supervisor.publishRun(row.id);
      return { ok: true };
    },
    'runs:untag': ({ id, tags }) => {
      const row = runs.find(id);
      queries.removeTags(row.id, tags);
      supervisor.publishRun(row.id);
      return { ok: true };
    },
    'runs:rename': ({ id, name }) => {
      const row = runs.find(id);
      queries.update(row.id, { name });
      supervisor.publishRun(row.id);
      return { ok: true };
    },
    'runs:time-note': ({ id, noteId, step, text }) => {
      const row = runs.find(id);
      const missing = () =>
        new TesseraError(
          'noNote',
          `run ${row.name} (${row.id}) has no note ${String(noteId)}`,
          'It was removed meanwhile.',
        );
      if (noteId === undefined) {
        if (text !== '') notes.addNote(row.id, { step: step ?? row.steps, atMs: Date.now(), text });
      } else if (!(text === '' ? notes.removeNote(row.id, noteId) : notes.editNote(row.id, noteId, text)))
        throw missing();
      return { notes: notes.notes(row.id) };
    },
    'runs:delete': ({ ids, forever }) => {
      deleteRuns(
        queries,
        ids.map((id) => runs.find(id)),
        forever,
      );
      return { ok: true };
    },
    'runs:restore': ({ ids }) => {
      for (const row of ids.map((id) => runs.find(id))) queries.update(row.id, { deletedAtMs: null });
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
      const details = ids.map(detail);
      const compared = compareRuns(details);
      const two = pair.map((index) => compared.results[index]);
      return {
        ...compared,
        figures: details.map((run) => runs.figures(run)),
        ...explainSpeed([two[0], two[1]], runs.accounts.of, whole),
      };
    },
    'runs:profile': ({ id }) => ({ profile: profileOf(id) }),
    'runs:trace': ({ id }) => ({ json: chromeTrace(profileOf(id), runs.find(id).name) }),
    'runs:report': ({ ids, pair }) => {
      const details = ids.map(detail);
      const reported = details.map((run) => ({
        run,
        loss: series.read(run.id, 'loss', reportPoints),
        figures: runs.figures(run),
        profile: queries.latestProfile(run.id) === undefined ? undefined : profileOf(run.id),
      }));
      if (details.length < 2) return { html: reportRuns(reported) };
      const compared = compareRuns(details);
      const two = pair.map((index) => compared.results[index]);
      const why = explainSpeed([two[0], two[1]], runs.accounts.of, false);
      return { html: reportRuns(reported, { ...compared, ...why }) };
    },
    'runs:export': async ({ id, folder, checkpoint }) => ({
      files: await exportRun(runs.home, runs.find(id), folder, checkpoint),
    }),
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
