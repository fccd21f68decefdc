import { counted } from '../contract/counted.ts';
import type { CoreClient } from '../contract/index.ts';
import { TesseraError } from '../contract/errors.ts';
import type { Recipe } from '../contract/recipe.ts';
import type { RunSummary } from '../contract/runs.ts';
import type { Invocation } from './command.ts';
import { followRun } from './followRun.ts';
import { measurePacking, packingTable, type PackingMeasurement } from './measurePacking.ts';
import { preflightText } from './preflightText.ts';
import { count } from './progressBar.ts';
import { fall } from './runText.ts';

const prompt = 'How do I sharpen a chisel?';
const answerTokens = 60;
const measuredExamples = 96;

export interface FirstRun {
  run: RunSummary;
  folder: string;
  packing: PackingMeasurement[];
  generated: { prompt: string; before: string; after: string };
}

type Shell = Pick<Invocation, 'core' | 'progress' | 'note' | 'interrupted'>;

/** The first run of a machine: from the sample chats to a trained model, each part shown as it happens. */
export async function firstRun(shell: Shell, core: CoreClient, recipe: Recipe): Promise<FirstRun> {
  const { note, progress } = shell;
  const call = { onProgress: progress.update };

  heading(note, 'Sample chats');
  const imported = await core.call('datasets:import', { paths: [recipe.dataset], model: recipe.model }, call);
  const { dataset } = imported;
  note(
    `${counted(dataset.rows, 'chat')}, ${counted(dataset.tokens, 'token')}, ${count(dataset.supervisedTokens)} of them supervised`,
  );
  if (dataset.numSkipped > 0) note(`${counted(dataset.numSkipped, 'row')} skipped`);

  heading(note, 'Preflight');
  const preflight = await core.call('runs:preflight', { recipe }, call);
  note(preflightText({ ...preflight, kernels: [] }));
  const stop = preflight.items.find(({ status }) => status === 'stop');
  if (stop !== undefined) throw new TesseraError('preflightStop', `${stop.name}: ${stop.message}`, stop.hint);

  heading(note, 'Training');
  const { run } = await core.call('runs:create', { recipe }, call);
  const ended = await followRun(core, run.id, shell);
  if (ended.status !== 'completed')
    throw new TesseraError('runNotCompleted', `the run is ${ended.status}: ${ended.reason ?? ''}`);
  note(`training loss  ${fall(ended.firstLoss, ended.lastLoss ?? NaN)}`);
  note(`held-out loss  ${fall(ended.evalLossBefore, ended.evalLossAfter ?? NaN)}`);
  note(`speed          ${count(ended.tokensPerSecond ?? 0)} real tokens/s`);

  heading(note, `Padded against packed, the same ${measuredExamples} chats`);
  const packing = await measurePacking(
    shell,
    { ...recipe, name: 'first run' },
    ['padded', 'best-fit'],
    measuredExamples,
  );
  note(packingTable(packing));

  heading(note, 'Before and after');
  const ask = async (model: string) =>
    (await core.call('runs:generate', { model, prompt, tokens: answerTokens })).text.trim();
  const generated = { prompt, before: await ask(recipe.model), after: await ask(run.id) };
  note(`> ${prompt}`);
  note(`before  ${generated.before.replaceAll('\n', ' ')}`);
  note(`after   ${generated.after.replaceAll('\n', ' ')}`);

  const { run: detail } = await core.call('runs:show', { id: run.id });
  return { run: ended, folder: detail.folder, packing, generated };
}

function heading(note: (line: string) => void, text: string): void {
  note(`\n── ${text}`);
}
