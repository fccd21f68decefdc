/**
 * Kills the core, the engine or the command of a run at random moments of its life, and looks at what is left:
 *   node scripts/bench/kills.ts [rounds] [seed]        default 20 1
 * With TESSERA_ELECTRON_PROGRAM naming Electron, a display and a built window, also the window's main process or its page:
 * the run goes on as if nothing had been.
 *
 * Each round trains the same recipe as a first run that nobody disturbed. Meanwhile it is paused, resumed, saved,
 * evaluated, compared and reported; then something dies. Afterwards the run must say honestly how it ended, nothing may
 * still be running, nothing half written may lie about, and resumed (killed again every other time) it must come to the
 * same losses, step by step, and to the same weights, bit by bit. Prints a line a round; exit code 1 where one failed.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { basename, join } from 'node:path';
import type { CoreClient } from '../../main/contract/index.ts';
import type { RunDetail } from '../../main/contract/runs.ts';
import { Random } from '../../main/core/random.ts';
import { coreOf, untilRun, workshop } from '../../tests/integration/workshop.ts';

const [rounds = 20, seed = 1] = process.argv.slice(2).map(Number);
const numSteps = 40;
const goneMs = 60_000;
const settings = [
  ...[`steps=${String(numSteps)}`, 'evalShare=0.1', 'evaluate.everySteps=7', 'checkpoint.everySteps=5'],
  ...['checkpoint.best=true', 'packing.budget=128'],
];
const shop = workshop();
const ended = new Set(['completed', 'stopped', 'failed']);
const electron = process.env.TESSERA_ELECTRON_PROGRAM;
const victims = ['core', 'engine', 'command', ...(electron === undefined ? [] : ['window', 'page'])];
const watchers = new Set(['window', 'page']);

/** Programs of this home by their command line. */
function programs(name: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && pid !== process.pid)
    .filter((pid) => {
      const command = commandOf(pid);
      return command.includes(shop.folder) && command.includes(name);
    });
}

/** Empty where the process has ended. */
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${String(pid)}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

function kill(pids: number[]): void {
  for (const pid of pids)
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      // One that ends meanwhile, as a window's helpers do.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A window on the same home; it may still be starting when it dies. */
function openWindow(): void {
  if (electron === undefined) return;
  const isRoot = process.getuid?.() === 0;
  const env = { ...shop.env, TESSERA_NO_DIALOGS: '1', ...(isRoot && { ELECTRON_DISABLE_SANDBOX: '1' }) };
  spawn(electron, ['.', '--home', shop.home], { env, stdio: 'ignore' });
}
const windowMains = () => programs('--home').filter((pid) => commandOf(pid).startsWith(electron ?? ' '));

function strikeAt(victim: string): void {
  if (victim === 'core') kill(programs('core/main.ts'));
  else if (victim === 'engine') kill(programs('tessera-engine train'));
  else if (victim === 'command') kill(programs('cli/main.ts train'));
  else if (victim === 'page') kill(programs('--type=renderer'));
  else kill(windowMains());
}

/** A run by `train` as a person would start it; resolves once the history has it. */
async function begin(name: string): Promise<string> {
  const sets = [...settings, `name=${name}`].flatMap((setting) => ['--set', setting]);
  const args = ['main/cli/main.ts', 'train', shop.recipe, ...sets, '--home', shop.home];
  spawn(process.execPath, args, { env: shop.env, stdio: 'ignore' });
  const core = await coreOf(shop);
  try {
    for (;;) {
      const { runs } = await core.call('runs:list', { search: `"${name}"` });
      const id = runs[0]?.id;
      if (id !== undefined) return id;
      await sleep(20);
    }
  } finally {
    core.close();
  }
}

/** What somebody does to a run until it is killed; whatever is refused then was not to be had. */
async function disturb(core: CoreClient, id: string, first: string, random: Random): Promise<void> {
  const asks: (() => Promise<unknown>)[] = [
    () => core.call('runs:command', { id, command: 'pause' }),
    () => core.call('runs:resume', { id }),
    () => core.call('runs:command', { id, command: 'checkpoint' }),
    () => core.call('runs:command', { id, command: 'profile' }),
    () => core.call('runs:compare', { ids: [first, id] }),
    () => core.call('runs:report', { ids: [first, id] }),
    () => core.call('runs:time-note', { id, text: 'still here' }),
    () => core.call('runs:export', { id, folder: join(shop.folder, `export-${id}`) }),
  ];
  const link = { isOpen: true };
  void core.closed.then(() => {
    link.isOpen = false;
  });
  while (link.isOpen) {
    void random
      .pick(asks)()
      .catch(() => undefined);
    await sleep(random.below(60));
  }
}

/** Losses and gradients by step as they are stored, and the weights' hash. */
async function outcome(core: CoreClient, id: string): Promise<string> {
  const read = async (metric: 'loss' | 'gradNorm') =>
    (await core.call('runs:series', { ids: [id], metric, maxPoints: 10_000 })).series[0];
  const [loss, gradNorm] = [await read('loss'), await read('gradNorm')];
  const { run } = await core.call('runs:show', { id });
  const weights = join(
    run.folder,
    'out',
    `checkpoint-${String(numSteps).padStart(8, '0')}`,
    'model.safetensors',
  );
  const hash = createHash('sha256').update(readFileSync(weights)).digest('hex');
  const evaluations = run.evaluations.map(({ step, loss: value }) => [step, value]);
  return JSON.stringify([loss?.steps.join(), loss?.mean.join(), gradNorm?.mean.join(), evaluations, hash]);
}

/** What must not be there once nothing runs. */
function leftovers(): string[] {
  const names = readdirSync(shop.folder, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => /\.(partial|new|tmp|temporary)|partial-|unfinished\/./.test(name));
}

/** Kills one part at a moment of chance; returns how the run says that it ended. */
async function strike(id: string, first: string, victim: string, random: Random): Promise<RunDetail> {
  const core = await coreOf(shop);
  if (watchers.has(victim)) openWindow();
  const busy = disturb(core, id, first, random);
  await sleep(random.below(6000));
  strikeAt(victim);
  if (victim !== 'core') core.close();
  await busy;
  const next = await coreOf(shop);
  try {
    return await within(goneMs, `${victim}: the run never ended`, letGo(next, id));
  } finally {
    // A window whose page died is still there, and ends when it is asked to.
    for (const pid of windowMains()) process.kill(pid, 'SIGTERM');
    next.close();
  }
}

/** What was asked for last may still be on its way: a run that is paused is let go until it ends. */
async function letGo(core: CoreClient, id: string): Promise<RunDetail> {
  for (;;) {
    const run = await untilRun(core, id, ({ status }) => status === 'paused' || ended.has(status));
    if (ended.has(run.status)) return run;
    await core.call('runs:resume', { id }).catch(() => undefined);
  }
}

async function within<T>(ms: number, what: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(what));
    }, ms);
  });
  return Promise.race([work, late]).finally(() => {
    clearTimeout(timer);
  });
}

async function untilNothingRuns(): Promise<void> {
  const deadline = performance.now() + goneMs;
  while (programs('').length > 0) {
    if (performance.now() > deadline) throw new Error(`still running: ${programs('').join(', ')}`);
    await sleep(100);
  }
}

async function round(index: number, first: string, expected: string): Promise<string> {
  const random = new Random(seed, index);
  const id = await begin(`round-${String(index)}`);
  const told: string[] = [];
  for (let strikes = 1 + random.below(2); strikes > 0; strikes -= 1) {
    const victim = random.pick(victims);
    const left = await strike(id, first, victim, random);
    told.push(`${victim} → ${left.status} at ${String(left.steps)}`);
    if (watchers.has(victim) && left.status !== 'completed')
      throw new Error(`a run that was only watched ${left.status}: ${left.reason ?? ''}`);
    if (left.status !== 'completed' && left.reason === undefined)
      throw new Error('it does not say why it ended');
    if (left.status === 'completed') break;
    const core = await coreOf(shop);
    // One that never saved begins anew.
    await core.call('runs:resume', { id });
    core.close();
  }
  const core = await coreOf(shop);
  const done = await within(goneMs, 'resumed, it never ended', letGo(core, id));
  if (done.status !== 'completed') throw new Error(`resumed, it ${done.status}: ${done.reason ?? ''}`);
  const came = await outcome(core, id);
  core.close();
  await untilNothingRuns();
  const left = leftovers();
  if (left.length > 0) throw new Error(`left behind: ${left.join(', ')}`);
  if (came !== expected) throw new Error(`it came to something else:\n${came}\n${expected}`);
  return told.join(', ');
}

let numFailed = 0;
try {
  const first = await begin('undisturbed');
  const core = await coreOf(shop);
  await untilRun(core, first, ({ status }) => status === 'completed');
  const expected = await outcome(core, first);
  core.close();
  for (let index = 1; index <= rounds; index += 1) {
    const startedMs = performance.now();
    try {
      const told = await round(index, first, expected);
      process.stdout.write(
        `${String(index).padStart(3)}  ok  ${told}  ${((performance.now() - startedMs) / 1000).toFixed(1)} s\n`,
      );
    } catch (error) {
      numFailed += 1;
      process.stdout.write(
        `${String(index).padStart(3)}  FAILED  ${error instanceof Error ? error.message : String(error)}\n`,
      );
    }
  }
} finally {
  kill(programs(''));
  if (numFailed === 0) rmSync(shop.folder, { recursive: true, force: true, maxRetries: 5 });
  else process.stdout.write(`kept: ${shop.folder} (${basename(shop.home)}/core.log)\n`);
}
process.exitCode = numFailed === 0 ? 0 : 1;
