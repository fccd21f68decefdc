import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { RunDetail, RunSummary } from '../../main/contract/runs.ts';
import { engineBinary } from '../../main/core/engine/binary.ts';
import { coreOf, tessera, tesseraJson, untilRun, workshop, type Workshop } from './workshop.ts';

let shop: Workshop;
beforeAll(() => {
  shop = workshop();
});
afterAll(async () => {
  await shop.close();
});

const show = async (id: string) => (await tesseraJson<{ run: RunDetail }>(shop, ['runs', 'show', id])).run;
const train = (...args: string[]) => tesseraJson<{ run: RunSummary }>(shop, ['train', shop.recipe, ...args]);

const isCode =
  (code: string) =>
  ({ data }: RunDetail['events'][number]) =>
    data.code === code;

describe('a run', { timeout: 120_000 }, () => {
  it('says beforehand what it will do, then does exactly that', async () => {
    const preflight = await tesseraJson<{ ok: boolean; steps: number; memory: Record<string, number> }>(
      shop,
      ['train', shop.recipe, '--dry-run', ...['--set', 'evalShare=0.2']],
    );
    expect(preflight.ok).toBe(true);
    expect(preflight.memory.total).toBeGreaterThan(0);
    const { run } = await train('--set', 'evalShare=0.2');
    expect(run.status).toBe('completed');
    expect(run.steps).toBe(preflight.steps);
    expect(run.lastLoss).toBeLessThan(run.firstLoss ?? 0);
    expect(run.evalLossAfter).toBeLessThan(run.evalLossBefore ?? 0);
    expect(run.tokensPerSecond).toBeGreaterThan(0);

    const detail = await show(run.id);
    expect(detail.recipe).toMatchObject({ packing: { strategy: 'best-fit', seed: 0 }, evalShare: 0.2 });
    expect(detail.events.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['eval', 'checkpoint', 'done']),
    );
    expect(detail.kernels.length).toBeGreaterThan(5);
    const { runs } = await tesseraJson<{ runs: RunSummary[] }>(shop, ['runs', 'list']);
    expect(runs.map(({ id }) => id)).toContain(run.id);
  });

  it('exports a model that loads again, generates, and reports in one page', async () => {
    const { run } = await train('--set', 'steps=2');
    const folder = join(shop.folder, 'exported');
    const { files } = await tesseraJson<{ files: string[] }>(shop, ['export', run.id, folder]);
    expect(files).toEqual(expect.arrayContaining(['config.json', 'model.safetensors', 'tokenizer.json']));
    expect(files.some((file) => /optimizer|state|manifest/.test(file))).toBe(false);
    const answer = await tesseraJson<{ text: string }>(shop, [
      'generate',
      folder,
      '--prompt',
      'Hello',
      '--tokens',
      '5',
    ]);
    expect(typeof answer.text).toBe('string');
    const same = await tesseraJson<{ text: string }>(shop, [
      'generate',
      run.id,
      '--prompt',
      'Hello',
      '--tokens',
      '5',
    ]);
    expect(same).toEqual(answer);
    const page = join(shop.folder, 'report.html');
    await tesseraJson(shop, ['runs', 'report', run.id, '--out', page]);
    const html = readFileSync(page, 'utf8');
    expect(html).toContain('<svg');
    expect(html).not.toMatch(/https?:|<script|<link|url\(/);
    expect(html).toMatch(/<th>dataset<\/th><td[^>]*>chats/);
    expect(html).toMatch(/<h2>Preflight<\/h2>[^]*<th>isolation<\/th><td>[^<]{20}/);
  });

  it('goes on to the bit after a stop: the same losses as without', async () => {
    // So many steps that the stop finds it going, however slow the machine is at asking for it.
    const whole = await train('--set', 'steps=150');
    const core = await coreOf(shop);
    const { run } = await train('--set', 'steps=150', '--detach');
    await untilRun(core, run.id, ({ steps }) => steps >= 3);
    const stopped = await core.call('runs:command', { id: run.id, command: 'stop' });
    expect(stopped.run.status).toBe('stopped');
    // Its plan is read again: one that was cut short meanwhile is named, and the run still there.
    const plan = join(shop.home, 'runs', run.id, 'plan.safetensors');
    const intact = readFileSync(plan);
    writeFileSync(plan, intact.subarray(0, intact.length - 8));
    await core.call('runs:resume', { id: run.id });
    const refused = await untilRun(core, run.id, ({ status }) => status === 'failed');
    expect(refused.reason).toContain(plan);
    writeFileSync(plan, intact);
    // Nor does it need the model that it began with, the checkpoint is one, nor the file that was imported.
    const chats = join(shop.folder, 'chats.jsonl');
    for (const path of [shop.model, chats]) renameSync(path, `${path}.away`);
    const resumed = await tesseraJson<{ run: RunSummary }>(shop, ['resume', run.id]);
    const answered = await tesseraJson<{ text: string }>(shop, ['generate', run.id, '--prompt', 'Hi']);
    for (const path of [shop.model, chats]) renameSync(`${path}.away`, path);
    expect(resumed.run).toMatchObject({ status: 'completed', steps: 150 });
    expect(answered.text).toBeTypeOf('string');
    const { series } = await core.call('runs:series', { ids: [whole.run.id, run.id], metric: 'loss' });
    expect([...(series[1]?.mean ?? [])]).toEqual([...(series[0]?.mean ?? [0])]);
    core.close();
  });

  it('pauses, saves on request and goes on', async () => {
    const core = await coreOf(shop);
    const { run } = await train('--set', 'steps=4000', '--detach');
    await untilRun(core, run.id, ({ steps }) => steps >= 1);
    expect((await tesseraJson<{ run: RunSummary }>(shop, ['pause', run.id])).run.status).toBe('paused');
    // Neither of these waits for a word that the engine does not say twice.
    expect((await tesseraJson<{ run: RunSummary }>(shop, ['pause', run.id])).run.status).toBe('paused');
    await expect(core.call('runs:command', { id: run.id, command: 'profile' })).rejects.toMatchObject({
      code: 'runPaused',
    });
    const { steps } = await show(run.id);
    await new Promise((done) => setTimeout(done, 500));
    expect((await show(run.id)).steps).toBe(steps);
    await tesseraJson(shop, ['resume', run.id, '--detach']);
    await tesseraJson(shop, ['checkpoint', run.id]);
    expect((await show(run.id)).checkpointStep).toBeGreaterThanOrEqual(steps);
    expect((await tesseraJson<{ run: RunSummary }>(shop, ['stop', run.id])).run.status).toBe('stopped');
    core.close();
  });
});

describe('when something dies', { timeout: 120_000 }, () => {
  const longRun = async () => {
    const { run } = await train('--set', 'steps=4000', '--set', 'checkpoint.everySteps=2', '--detach');
    const core = await coreOf(shop);
    await untilRun(core, run.id, ({ steps }) => steps >= 3);
    return { core, id: run.id };
  };
  const enginePid = (id: string) => {
    const { engine } = shop.row(id);
    return (JSON.parse(engine ?? '{}') as { pid: number }).pid;
  };

  it('marks the run failed with the reason when its engine is killed; the core lives, resume works', async () => {
    const { core, id } = await longRun();
    const { pid } = await core.call('system:info', {});
    process.kill(enginePid(id), 'SIGKILL');
    const failed = await untilRun(core, id, ({ status }) => status === 'failed');
    expect(failed.reason).toContain('SIGKILL');
    expect((await core.call('system:info', {})).pid).toBe(pid);
    await tesseraJson(shop, ['resume', id, '--detach']);
    const going = await untilRun(
      core,
      id,
      ({ status, steps }) => status === 'running' && steps > failed.steps,
    );
    expect(going.reason).toBeUndefined();
    await tesseraJson(shop, ['stop', id]);
    // Steps that were trained twice, before and after the checkpoint, count once.
    const stopped = (await show(id)).steps;
    expect(shop.accounts(id).map(({ total }) => total.steps)).toEqual([stopped]);
    core.close();
  });

  it('trains over ranks as one does that accumulates; one that dies is named, and the run goes on', async () => {
    const ranks = ['--set', 'device=cpu:0,1', '--set', 'sharding=weights'];
    const several = await train(...ranks, '--set', 'steps=4');
    const one = await train('--set', 'gradAccumulation=2', '--set', 'steps=4');
    expect(several.run).toMatchObject({ status: 'completed', steps: 4 });
    expect(several.run.lastLoss).toBeCloseTo(one.run.lastLoss ?? 0, 4);
    const { device, kernels, preflight } = await show(several.run.id);
    expect(device).toBe('cpu:0,1');
    expect(kernels).toContainEqual(
      expect.objectContaining({
        ...{ layerKind: 'ranks', forward: 'local sockets' },
        reason: expect.stringContaining('ZeRO-3') as string,
      }),
    );
    expect(preflight?.items.find(({ name }) => name === 'ranks')?.message).toMatch(
      /^2 ranks, 1 bin each a step, .*each holds a share of weights, gradients .*\(ZeRO-3\)/,
    );

    const { run } = await train(
      ...ranks,
      '--set',
      'steps=4000',
      '--set',
      'checkpoint.everySteps=2',
      '--detach',
    );
    const core = await coreOf(shop);
    await untilRun(core, run.id, ({ steps }) => steps >= 3);
    const engine = enginePid(run.id);
    const children = readFileSync(`/proc/${engine}/task/${engine}/children`, 'utf8');
    process.kill(Number(children.trim()), 'SIGKILL');
    const failed = await untilRun(core, run.id, ({ status }) => status === 'failed');
    expect(failed.reason).toBe('rank 1 was killed by signal 9 (Killed)');
    // On one device, then on two again: a step keeps its bins.
    let { steps: before } = failed;
    for (const device of ['cpu', 'cpu:0,1']) {
      await tesseraJson(shop, ['resume', run.id, '--device', device, '--detach']);
      await untilRun(core, run.id, ({ status, steps }) => status === 'running' && steps > before);
      expect((await tesseraJson<{ run: RunSummary }>(shop, ['pause', run.id])).run.status).toBe('paused');
      expect((await tesseraJson<{ run: RunSummary }>(shop, ['stop', run.id])).run.status).toBe('stopped');
      before = (await show(run.id)).steps;
    }
    core.close();
  });

  it('charges no step for a time in which the engine stood still', async () => {
    const { core, id } = await longRun();
    const engine = enginePid(id);
    process.kill(engine, 'SIGSTOP');
    await new Promise((done) => setTimeout(done, 3000));
    process.kill(engine, 'SIGCONT');
    const going = await untilRun(core, id, ({ events }) => events.some(isCode('stood_still')));
    const seconds = Number(going.events.find(isCode('stood_still'))?.data.seconds);
    expect(seconds).toBeGreaterThan(2.5);
    await tesseraJson(shop, ['stop', id]);
    const { elapsedMs, startedAtMs, endedAtMs } = await show(id);
    expect(elapsedMs).toBeLessThan((endedAtMs ?? 0) - (startedAtMs ?? 0) - 900 * seconds);
    core.close();
  });

  it('leaves no orphan when the core is killed: the engine saves, the next core marks the run, resume works', async () => {
    const { core, id } = await longRun();
    const engine = enginePid(id);
    const { pid } = await core.call('system:info', {});
    process.kill(pid, 'SIGKILL');
    await core.closed;
    const next = await coreOf(shop);
    const marked = await untilRun(next, id, ({ status }) => status === 'stopped');
    expect(marked.reason).toContain('the core died');
    // What was on its way when the core died is in the history all the same, up to what was saved.
    expect(marked.steps).toBe(marked.checkpointStep);
    expect(() => process.kill(engine, 0)).toThrow();
    await tesseraJson(shop, ['resume', id, '--detach']);
    await untilRun(next, id, ({ status, steps }) => status === 'running' && steps > marked.steps);
    await tesseraJson(shop, ['stop', id]);
    next.close();
  });

  it('fails the attached command, and says how to go on', async () => {
    const attached = tessera(shop, ['train', shop.recipe, '--set', 'steps=4000', '--json']);
    const core = await coreOf(shop);
    const { runs } = await untilList(
      core,
      ({ runs: list }) => list[0]?.status === 'running' && list[0].steps >= 1,
    );
    const id = runs[0]?.id ?? '';
    process.kill(enginePid(id), 'SIGKILL');
    const { code, out } = await attached;
    expect(code).toBe(1);
    const { error } = JSON.parse(out) as { error: { code: string; message: string; hint: string } };
    expect(error.code).toBe('runFailed');
    expect(error.message).toContain('SIGKILL');
    expect(error.hint).toBe(`Resume it (tessera resume ${id}): it starts from the beginning.`);
    core.close();
  });

  it('goes on without the command that started it', async () => {
    const child = spawn(
      process.execPath,
      ['main/cli/main.ts', 'train', shop.recipe, '--set', 'steps=4000', '--home', shop.home],
      {
        env: shop.env,
      },
    );
    const core = await coreOf(shop);
    const { runs } = await untilList(
      core,
      ({ runs: list }) => list[0]?.status === 'running' && list[0].steps >= 1,
    );
    child.kill('SIGKILL');
    const id = runs[0]?.id ?? '';
    const at = (await core.call('runs:show', { id })).run.steps;
    await untilRun(core, id, ({ steps }) => steps > at + 2);
    await tesseraJson(shop, ['stop', id]);
    core.close();
  });

  it('stops, saved, on Ctrl-C of an attached train', async () => {
    const child = spawn(
      process.execPath,
      ['main/cli/main.ts', 'train', shop.recipe, '--set', 'steps=4000', '--json', '--home', shop.home],
      {
        env: shop.env,
      },
    );
    let out = '';
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
    const core = await coreOf(shop);
    await untilList(core, ({ runs }) => runs[0]?.status === 'running' && runs[0].steps >= 2);
    child.kill('SIGINT');
    await new Promise((done) => child.once('close', done));
    const { run } = JSON.parse(out) as { run: RunSummary };
    expect(run.status).toBe('stopped');
    expect((await show(run.id)).checkpointStep).toBe(run.steps);
    core.close();
  });

  async function untilList(
    core: Awaited<ReturnType<typeof coreOf>>,
    holds: (list: { runs: RunSummary[] }) => boolean,
  ): Promise<{ runs: RunSummary[] }> {
    for (;;) {
      const list = await core.call('runs:list', {});
      if (holds(list)) return list;
      await new Promise((done) => setTimeout(done, 100));
    }
  }
});

describe('a clock that is set back by an hour', { timeout: 120_000 }, () => {
  it('changes neither the order of the steps nor the time that they took, and resume goes on', async () => {
    const jumping = workshop();
    const { folder, env } = jumping;
    onTestFinished(() => jumping.close());
    const library = join(folder, 'clock.so');
    execFileSync('cc', ['-shared', '-fPIC', '-o', library, 'tests/native/jumping_clock.c']);
    const clock = join(folder, 'clock');
    Object.assign(env, { LD_PRELOAD: library, JUMPING_CLOCK: clock });
    const setBack = (seconds: number) => {
      writeFileSync(`${clock}.new`, String(seconds));
      renameSync(`${clock}.new`, clock);
    };
    setBack(0);
    const begin = (name: string) =>
      tesseraJson<{ run: RunSummary }>(jumping, [
        ...['train', jumping.recipe, '--set', 'steps=2000', '--set', `name=${name}`, '--detach'],
      ]);
    const { run } = await begin('first');
    const core = await coreOf(jumping);
    const before = await untilRun(core, run.id, ({ steps }) => steps >= 5);
    setBack(3600);
    await untilRun(core, run.id, ({ steps }) => steps > before.steps + 5);
    await tesseraJson(jumping, ['stop', run.id]);
    const stopped = await untilRun(core, run.id, ({ status }) => status === 'stopped');
    expect(stopped.endedAtMs).toBeLessThan(stopped.startedAtMs ?? 0);

    const read = async (axis: 'wall' | 'elapsed') =>
      (await core.call('runs:series', { ids: [run.id], metric: 'milliseconds', axis })).series[0];
    const [byClock, byTime] = [await read('wall'), await read('elapsed')];
    const count = stopped.steps;
    expect([...(byTime?.steps ?? [])]).toEqual(Array.from({ length: count }, (_, i) => i + 1));
    // The jump was there, and the time that passed knows nothing of it.
    expect(Math.max(...(byClock?.x ?? [])) - (byClock?.x.at(-1) ?? 0)).toBeGreaterThan(3_000_000);
    expect([...(byTime?.x ?? [])]).toEqual([...(byTime?.x ?? [])].sort((a, b) => a - b));
    expect(Math.min(...(byTime?.mean ?? []))).toBeGreaterThan(0);
    expect(stopped.elapsedMs).toBeGreaterThan(0);
    expect(stopped.elapsedMs).toBeLessThan(600_000);

    await tesseraJson(jumping, ['resume', run.id, '--detach']);
    const again = await untilRun(core, run.id, ({ steps }) => steps > count);
    expect(again.elapsedMs).toBeGreaterThan(stopped.elapsedMs);
    await tesseraJson(jumping, ['stop', run.id]);
    // The one that was made last is the latest, though the clock says that it is older.
    const { run: other } = await begin('second');
    expect(other.createdAtMs).toBeLessThan(run.createdAtMs);
    expect((await core.call('runs:show', { id: 'latest' })).run.name).toBe('second');
    // One that still trains is compared as it is now.
    await untilRun(core, other.id, ({ steps }) => steps >= 2);
    const { results, figures } = await core.call('runs:compare', { ids: [run.id, other.id] });
    expect(results[1]?.status).toBe('running');
    for (const { realTokens, positions, bestLoss } of figures) {
      expect(realTokens).toBeGreaterThan(0);
      expect(positions).toBeGreaterThanOrEqual(realTokens);
      expect(bestLoss).toBeGreaterThan(0);
    }
    await tesseraJson(jumping, ['stop', 'latest']);
    core.close();
  });
});

describe('a disk without room for a checkpoint', { timeout: 120_000 }, () => {
  it('costs a run no more than that checkpoint; its end waits until it can be written', async () => {
    const small = workshop();
    onTestFinished(() => small.close());
    // No file may grow beyond a few kilobytes; the limit of a program that runs can be lifted from outside.
    const limited = join(small.folder, 'engine');
    const body = `[ "$1" = train ] && [ -e ${small.folder}/full ] && ulimit -S -f 16; exec ${engineBinary()} "$@"`;
    writeFileSync(limited, `#!/bin/sh\n${body}\n`, { mode: 0o755 });
    writeFileSync(join(small.folder, 'full'), '');
    small.env.TESSERA_ENGINE = limited;
    const { run } = await tesseraJson<{ run: RunSummary }>(small, [
      ...['train', small.recipe, '--set', 'steps=30', '--set', 'checkpoint.everySteps=10', '--detach'],
    ]);
    const core = await coreOf(small);
    const waiting = await untilRun(core, run.id, ({ status }) => status === 'paused');
    expect(waiting.steps).toBe(30);
    expect(waiting.reason).toMatch(/checkpoint-00000030.*File too large.*it takes .*bytes.*free some space/);
    expect(waiting.events.filter(isCode('checkpoint_skipped')).map(({ step }) => step)).toEqual([10, 20, 30]);
    expect(readdirSync(join(waiting.folder, 'out'))).toEqual([]);
    await expect(core.call('runs:command', { id: run.id, command: 'checkpoint' })).rejects.toMatchObject({
      code: 'checkpointSkipped',
    });
    const { pid } = JSON.parse(small.row(run.id).engine ?? '{}') as { pid: number };
    execFileSync('prlimit', ['--pid', String(pid), '--fsize=unlimited']);
    await core.call('runs:resume', { id: run.id });
    const done = await untilRun(core, run.id, ({ status }) => status === 'completed');
    expect(done).toMatchObject({ checkpointStep: 30 });
    expect(done.reason).toBeUndefined();

    // Stopped once it says why it cannot; stopped again it ends, with what its last checkpoint holds.
    const { run: other } = await tesseraJson<{ run: RunSummary }>(small, [
      ...['train', small.recipe, '--set', 'steps=2000', '--detach'],
    ]);
    await untilRun(core, other.id, ({ steps }) => steps >= 2);
    await expect(core.call('runs:command', { id: other.id, command: 'stop' })).rejects.toMatchObject({
      code: 'notSaved',
    });
    expect((await core.call('runs:show', { id: other.id })).run.status).toBe('paused');
    await core.call('runs:command', { id: other.id, command: 'stop' });
    expect((await core.call('runs:show', { id: other.id })).run.status).toBe('failed');
    core.close();
  });
});

describe('bad input', { timeout: 120_000 }, () => {
  const failure = async (args: string[]) => {
    const { code, out } = await tessera(shop, [...args, '--json']);
    return { code, ...(JSON.parse(out) as { error: { code: string; message: string; hint?: string } }) };
  };

  it('names the key, the file or the field', async () => {
    expect(await failure(['train', shop.recipe, '--set', 'packing.bugdet=3'])).toMatchObject({
      code: 1,
      error: { code: 'badRecipe', hint: "Did you mean 'budget'?" },
    });
    expect((await failure(['train', shop.recipe, '--set', 'packing.budget=0'])).error.message).toContain(
      'packing.budget',
    );
    expect(
      (await failure(['train', shop.recipe, '--set', 'dataset=/no/such.jsonl'])).error.message,
    ).toContain('/no/such.jsonl');
    expect((await failure(['train', shop.recipe, '--set', 'model=/no/such'])).error.message).toContain(
      '/no/such',
    );
    expect((await failure(['runs', 'show', 'nothing'])).error.code).toBe('noRun');
    expect((await failure(['train'])).code).toBe(2);
  });

  it('refuses a model that cannot be trained, by name', async () => {
    const broken = join(shop.folder, 'broken');
    mkdirSync(broken);
    for (const file of ['tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja']) {
      const source = join(shop.model, file);
      if (existsSync(source)) writeFileSync(join(broken, file), readFileSync(source));
    }
    const config = JSON.parse(readFileSync(join(shop.model, 'config.json'), 'utf8')) as object;
    writeFileSync(join(broken, 'config.json'), JSON.stringify({ ...config, model_type: 'llama' }));
    expect((await failure(['train', shop.recipe, '--set', `model=${broken}`])).error.message).toContain(
      'llama',
    );
    writeFileSync(join(broken, 'config.json'), JSON.stringify(config));
    const weights = readFileSync(join(shop.model, 'model.safetensors'));
    writeFileSync(join(broken, 'model.safetensors'), weights.subarray(0, weights.length / 2));
    expect((await failure(['train', shop.recipe, '--set', `model=${broken}`])).error.message).toContain(
      'model.safetensors',
    );
  });
});
