/**
 * Teaches the bundled model its first English: draws the text (pretraining/makeText.ts), tokenises and packs it,
 * starts from random weights and trains with Tessera's own engine until the held-out loss is at a plateau. Every
 * token is a target here; the sample chats play no part. Writes the weights, the loss curve (CSV and SVG) and the
 * figures (teaching.json) into the model's folder. Run again after an interruption, it goes on from the last
 * checkpoint.
 *
 *   node scripts/assets/teachModel.ts WORK-FOLDER [--engine FILE] [--threads N]
 */
import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { Tokenizer } from 'tokenizers';
import { parsePythonJson } from '../../main/core/datasets/pythonJson.ts';
import { chatContext } from '../../main/core/datasets/template/chat.ts';
import { compileTemplate } from '../../main/core/datasets/template/template.ts';
import { planPacking } from '../../main/core/packing/plan.ts';
import { writePlan } from '../../main/core/packing/planFile.ts';
import { writeSafetensors } from '../../main/core/safetensors.ts';
import { lossCurveSvg } from './lossCurve.ts';

const root = join(import.meta.dirname, '..', '..');
const model = join(root, 'assets', 'models', 'workshop-3m');
const recipe = JSON.parse(readFileSync(join(model, 'teaching-recipe.json'), 'utf8')) as {
  seed: number;
  epochs: number;
  packing: { strategy: 'best-fit'; budget: number };
};

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { engine: { type: 'string' }, threads: { type: 'string', default: '2' } },
});
const work = positionals[0];
if (work === undefined) throw new Error('usage: teachModel.ts WORK-FOLDER [--engine FILE] [--threads N]');
const engine = options.engine ?? join(root, 'build', 'tessera-engine');
const at = (...names: string[]) => join(work, ...names);

interface Curve {
  step: number;
  loss?: number;
  heldOut?: number;
}

await prepare();
publish(await teach());

async function prepare(): Promise<void> {
  if (existsSync(at('recipe.json'))) return;
  mkdirSync(work as string, { recursive: true });
  const [text, heldOut] = [at('text.jsonl'), at('held-out.jsonl')];
  execFileSync(process.execPath, [join(import.meta.dirname, 'pretraining', 'makeText.ts'), text, heldOut]);
  const lengths = await writeCache(text, at('cache'));
  const heldOutLengths = await writeCache(heldOut, at('held-out'));
  const { seed, epochs } = recipe;
  const { strategy, budget } = recipe.packing;
  const plan = planPacking({ lengths, budget, strategy, seed, epochs, overlong: 'split' });
  writePlan(at('plan.safetensors'), plan, 'teaching');
  const heldOutPlan = planPacking({
    lengths: heldOutLengths,
    budget,
    strategy: 'in-order',
    overlong: 'split',
  });
  writePlan(at('held-out-plan.safetensors'), heldOutPlan, 'teaching');
  execFileSync(engine, [
    'init',
    '--config',
    join(model, 'config.json'),
    '--seed',
    String(seed),
    '--out',
    at('init'),
  ]);
  console.log(`${lengths.length} examples, ${plan.tokens / epochs} tokens an epoch, ${plan.steps} steps`);
  writeFileSync(at('recipe.json'), JSON.stringify({ ...recipe, steps: plan.steps }, null, 1));
}

/** Renders each row as the model's template does, every token supervised; returns the lengths. */
async function writeCache(path: string, folder: string): Promise<Int32Array> {
  const template = compileTemplate(readFileSync(join(model, 'chat_template.jinja'), 'utf8'));
  const tokenizer = Tokenizer.fromFile(join(model, 'tokenizer.json'));
  const texts = readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => {
      const { text } = JSON.parse(line) as { text?: string };
      return text === undefined ? template.render(chatContext(parsePythonJson(line))) : `${text}<|im_end|>`;
    });
  const ids = (await tokenizer.encodeBatch(texts)).map((encoding) => Int32Array.from(encoding.getIds()));
  const lengths = Int32Array.from(ids, ({ length }) => length);
  let end = 0n;
  const offsets = BigInt64Array.from([0n, ...ids.map(({ length }) => (end += BigInt(length)))]);
  mkdirSync(folder, { recursive: true });
  writeSafetensors(join(folder, 'shard-00000.safetensors'), {
    input_ids: { dtype: 'I32', data: ids },
    supervised: { dtype: 'U8', data: new Uint8Array(Number(end)).fill(1) },
    offsets: { dtype: 'I64', data: offsets },
  });
  return lengths;
}

function checkpoints(): string[] {
  if (!existsSync(at('run'))) return [];
  return readdirSync(at('run'))
    .filter((name) => /^checkpoint-\d+$/.test(name))
    .sort((a, b) => Number(a.slice(11)) - Number(b.slice(11)));
}

async function teach(): Promise<Curve[]> {
  const last = checkpoints().at(-1);
  const child = spawn(
    engine,
    [
      ...['train', '--recipe', at('recipe.json'), '--cache', at('cache'), '--plan', at('plan.safetensors')],
      ...['--eval-cache', at('held-out'), '--eval-plan', at('held-out-plan.safetensors')],
      ...['--model', at('init'), '--out', at('run'), '--threads', options.threads],
      ...(last === undefined ? [] : ['--resume', at('run', last)]),
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const curve = readCurve();
  const exited = new Promise<number | null>((resolve) => child.on('exit', resolve));
  for await (const line of createInterface({ input: child.stdout })) {
    const event = JSON.parse(line) as {
      event: string;
      step: number;
      loss: number;
      steps: number;
      message?: string;
    };
    if (event.event === 'error') throw new Error(event.message);
    if (event.event !== 'step' && event.event !== 'eval') continue;
    const point = { step: event.step, [event.event === 'step' ? 'loss' : 'heldOut']: event.loss };
    curve.push(point);
    writeFileSync(at('curve.jsonl'), `${JSON.stringify(point)}\n`, { flag: 'a' });
    if (event.event === 'eval') console.log(`step ${event.step}: held-out loss ${event.loss.toFixed(3)}`);
    else if (event.step % 20 === 0)
      console.log(`step ${event.step} of ${event.steps}: loss ${event.loss.toFixed(3)}`);
  }
  const status = await exited;
  if (status !== 0) throw new Error(`the engine ended with ${status}`);
  return curve;
}

/** The points of earlier parts of the run; a resumed run gives some of them again, and the later ones count. */
function readCurve(): Curve[] {
  if (!existsSync(at('curve.jsonl'))) return [];
  const lines = readFileSync(at('curve.jsonl'), 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Curve);
}

function publish(points: Curve[]): void {
  const losses = new Map(points.flatMap(({ step, loss }) => (loss === undefined ? [] : [[step, loss]])));
  const heldOut = new Map(
    points.flatMap(({ step, heldOut }) => (heldOut === undefined ? [] : [[step, heldOut]])),
  );
  const last = checkpoints().at(-1);
  if (last === undefined) throw new Error('the run left no checkpoint');
  copyFileSync(at('run', last, 'model.safetensors'), join(model, 'model.safetensors'));
  const steps = [...new Set([...losses.keys(), ...heldOut.keys()])].sort((a, b) => a - b);
  const rows = steps.map((step) => [
    step,
    losses.get(step)?.toFixed(4) ?? '',
    heldOut.get(step)?.toFixed(4) ?? '',
  ]);
  writeFileSync(
    join(model, 'teaching-curve.csv'),
    ['step,loss,held_out_loss', ...rows.map((row) => row.join(','))].join('\n') + '\n',
  );
  writeFileSync(join(model, 'teaching-curve.svg'), lossCurveSvg([...losses], [...heldOut]));
  const final = [...heldOut.values()].at(-1);
  console.log(
    `held-out loss ${final?.toFixed(3) ?? 'unknown'} nats a token after ${steps.at(-1) ?? 0} steps`,
  );
}
