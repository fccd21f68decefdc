import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunDetail, RunSummary } from '../../main/contract/runs.ts';
import { coreOf, tessera, tesseraJson, untilRun, workshop, type Workshop } from './workshop.ts';

let shop: Workshop;
beforeAll(() => {
  shop = workshop();
});
afterAll(async () => {
  await shop.close();
});

const set = (settings: Record<string, unknown>) =>
  Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${JSON.stringify(value)}`]);
const show = async (id: string) => (await tesseraJson<{ run: RunDetail }>(shop, ['runs', 'show', id])).run;
async function train(settings: Record<string, unknown>): Promise<RunDetail> {
  const { run } = await tesseraJson<{ run: RunSummary }>(shop, ['train', shop.recipe, ...set(settings)]);
  return show(run.id);
}
const steps = (run: RunDetail) =>
  readdirSync(join(run.folder, 'out'))
    .map((name) => Number(/^checkpoint-(\d+)$/.exec(name)?.[1]))
    .filter((step) => !Number.isNaN(step))
    .sort((a, b) => a - b);

describe('evaluation during training', { timeout: 180_000 }, () => {
  it('measures a second dataset every so many steps, per supervised token, whatever the packing', async () => {
    const held = join(shop.folder, 'held.jsonl');
    writeFileSync(
      held,
      readFileSync('assets/samples/chats.jsonl', 'utf8').split('\n').slice(100, 112).join('\n'),
    );
    const base = { evalDataset: held, steps: 6, 'evaluate.everySteps': 2, seed: 3 };
    const packed = await train(base);
    expect(packed.evaluations.map(({ step, phase }) => [step, phase])).toEqual([
      [0, 'before'],
      [2, 'during'],
      [4, 'during'],
      [6, 'after'],
    ]);
    for (const { loss, perplexity } of packed.evaluations) expect(perplexity).toBeCloseTo(Math.exp(loss));
    expect(packed.plan.evalExamples).toBe(12);
    // Held-out examples are packed for themselves: another budget measures the same tokens and the same loss.
    const other = await train({ ...base, 'packing.budget': 2048 });
    const wide = await train({ ...base, 'packing.budget': 4096 });
    const [first, second] = [other.evaluations[0], wide.evaluations[0]];
    expect(first?.tokens).toBe(second?.tokens);
    expect(Math.abs((first?.loss ?? 0) / (second?.loss ?? 1) - 1)).toBeLessThan(1e-5);
  });

  it('keeps the best checkpoint besides the newest, over a resume, and goes on or answers from it', async () => {
    // A rate that climbs until it hurts: the best comes early, what follows is worse.
    const run = await train({
      evalShare: 0.2,
      steps: 24,
      'evaluate.everySteps': 4,
      'checkpoint.best': true,
      'checkpoint.everySteps': 4,
      'checkpoint.keep': 1,
      'optimizer.lr': 0.3,
      'optimizer.clip': 0,
      'schedule.warmupSteps': 24,
    });
    const after = run.evaluations.filter(({ step }) => step > 0);
    const best = after.reduce((low, one) => (one.loss < low.loss ? one : low));
    expect(run).toMatchObject({ bestStep: best.step, bestLoss: best.loss });
    expect(best.step).toBeLessThan(24);
    expect(steps(run)).toEqual([best.step, 24]);
    const core = await coreOf(shop);
    const { checkpoints } = await core.call('runs:checkpoints', { id: run.id });
    expect(checkpoints.map(({ step, isBest, isNewest }) => [step, isBest, isNewest])).toEqual([
      [24, false, true],
      [best.step, true, false],
    ]);
    // What is exported, and what answers, are the weights of the step that was asked for.
    const folder = join(shop.folder, 'best');
    await tesseraJson(shop, ['export', run.id, folder, '--checkpoint', 'best']);
    const weights = (path: string) => readFileSync(join(path, 'model.safetensors'));
    expect(weights(folder).equals(weights(checkpoints[1]?.path ?? ''))).toBe(true);
    expect(weights(folder).equals(weights(checkpoints[0]?.path ?? ''))).toBe(false);
    await tesseraJson(shop, [
      'generate',
      run.id,
      '--checkpoint',
      'best',
      '--prompt',
      'Hello',
      '--tokens',
      '2',
    ]);
    const missing = await tessera(shop, [
      'export',
      run.id,
      join(shop.folder, 'x'),
      '--checkpoint',
      '3',
      '--json',
    ]);
    expect(missing.out).toContain(`There are steps 24, ${best.step}`);

    // From the best on: what followed it is trained again, and the best stays.
    await core.call('runs:resume', { id: run.id, from: 'best' });
    const again = await untilRun(core, run.id, ({ status }) => status === 'completed');
    expect(again.steps).toBe(24);
    expect((await show(run.id)).evaluations).toEqual(run.evaluations);
    expect(steps(run)).toEqual([best.step, 24]);
    core.close();
  });

  it('saves by the minute, profiles the step asked for, and keeps the answers to its prompts', async () => {
    const run = await train({
      steps: 6,
      evalShare: 0.1,
      'evaluate.everySteps': 3,
      'evaluate.samples': ['Hello', 'How are you?'],
      'evaluate.sampleTokens': 5,
      'checkpoint.everyMinutes': 1e-6,
      'checkpoint.keep': 9,
      profileAtStep: 4,
    });
    expect(steps(run)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(run.events.filter(({ kind }) => kind === 'profile').map(({ step }) => step)).toEqual([4]);
    expect(run.samples.map(({ step, prompt }) => [step, prompt])).toEqual(
      [0, 3, 6].flatMap((step) => [
        [step, 'Hello'],
        [step, 'How are you?'],
      ]),
    );
    // The engine's own words are those of the exported weights.
    const { text } = await tesseraJson<{ text: string }>(shop, [
      ...['generate', run.id, '--prompt', 'How are you?', '--tokens', '5'],
    ]);
    expect(run.samples.at(-1)?.text).toBe(text);
    expect(run.hashes.model).toMatch(/^[0-9a-f]{64}$/);
    expect(run.codeVersion).toMatch(/^\d+\.\d+/);

    // As a core leaves it that died before it kept the last answers: the next one takes them from the checkpoint.
    const core = await coreOf(shop);
    process.kill((await core.call('system:info', {})).pid, 'SIGKILL');
    await core.closed;
    const db = new Database(join(shop.home, 'tessera.sqlite'));
    db.prepare("UPDATE runs SET status = 'running', engine = NULL WHERE id = ?").run(run.id);
    db.prepare('DELETE FROM runSamples WHERE runId = ? AND step > 0').run(run.id);
    db.close();
    const next = await coreOf(shop);
    const left = await untilRun(next, run.id, ({ samples }) => samples.length === run.samples.length);
    expect(left.samples).toEqual(run.samples);
    next.close();
  });

  it('shows the step at which a run came to no number, and counts it nowhere', async () => {
    const { out, code } = await tessera(shop, [
      ...[
        'train',
        shop.recipe,
        ...set({ steps: 40, 'optimizer.lr': 1000, 'optimizer.weightDecay': 1000, 'optimizer.clip': 0 }),
        '--json',
      ],
    ]);
    expect(code).toBe(1);
    const core = await coreOf(shop);
    const { run } = await core.call('runs:show', { id: 'latest' });
    expect(run.status).toBe('failed');
    expect(out).toContain('NaN or infinite');
    const { series } = await core.call('runs:series', { ids: [run.id], metric: 'loss' });
    const [loss] = series;
    expect([...(loss?.numNonFinite ?? [])].at(-1)).toBe(1);
    expect(run.steps).toBe((loss?.steps.length ?? 0) - 1);
    expect(run.lastLoss === undefined || Number.isFinite(run.lastLoss)).toBe(true);
    core.close();
  });
});

describe('deleting', { timeout: 60_000 }, () => {
  it('hides, brings back, and at last takes the files along; a going run is refused', async () => {
    const run = await train({ steps: 1 });
    await tesseraJson(shop, ['runs', 'delete', run.id]);
    const ids = async (...args: string[]) =>
      (await tesseraJson<{ runs: RunSummary[] }>(shop, ['runs', 'list', ...args])).runs.map(({ id }) => id);
    expect(await ids()).not.toContain(run.id);
    expect(await ids('--deleted')).toContain(run.id);
    expect(existsSync(run.folder)).toBe(true);
    await tesseraJson(shop, ['runs', 'delete', run.id, '--undo']);
    expect(await ids()).toContain(run.id);
    await tesseraJson(shop, ['runs', 'delete', run.id, '--forever']);
    expect(await ids('--deleted')).not.toContain(run.id);
    expect(existsSync(run.folder)).toBe(false);
    const going = await tesseraJson<{ run: RunSummary }>(shop, [
      ...['train', shop.recipe, ...set({ steps: 4000 }), '--detach'],
    ]);
    const refused = await tessera(shop, ['runs', 'delete', going.run.id, '--json']);
    expect(refused.out).toContain('runActive');
    await tesseraJson(shop, ['stop', going.run.id]);
  });
});
