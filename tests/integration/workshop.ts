import { execFile, execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Database from 'better-sqlite3';
import type { CoreClient } from '../../main/contract/index.ts';
import type { RunDetail } from '../../main/contract/runs.ts';
import { attachCore, findCore } from '../../main/core/attach.ts';
import { engineBinary } from '../../main/core/engine/binary.ts';

/** A home, a tiny hybrid model with random weights, a handful of chats and a recipe: enough to train in earnest. */
export interface Workshop {
  folder: string;
  home: string;
  model: string;
  recipe: string;
  env: NodeJS.ProcessEnv;
  row: (id: string) => { engine: string | null };
  /** Where the time of a run went, one for each engine that began it anew. */
  accounts: (id: string) => { total: { steps: number } }[];
  close: () => Promise<void>;
}

const assets = 'assets/models/workshop-3m';

const config = {
  architectures: ['Qwen3_5ForCausalLM'],
  model_type: 'qwen3_5_text',
  dtype: 'float32',
  vocab_size: 4096,
  hidden_act: 'silu',
  attention_bias: false,
  attn_output_gate: true,
  max_position_embeddings: 4096,
  rms_norm_eps: 1e-6,
  tie_word_embeddings: true,
  initializer_range: 0.02,
  linear_conv_kernel_dim: 4,
  eos_token_id: 4089,
  hidden_size: 32,
  intermediate_size: 64,
  num_hidden_layers: 4,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  head_dim: 16,
  linear_key_head_dim: 16,
  linear_value_head_dim: 16,
  linear_num_key_heads: 1,
  linear_num_value_heads: 2,
  layer_types: ['linear_attention', 'linear_attention', 'linear_attention', 'full_attention'],
  rope_parameters: { rope_type: 'default', rope_theta: 10000, partial_rotary_factor: 0.5 },
};

export function workshop(): Workshop {
  const folder = mkdtempSync(join(tmpdir(), 'tessera-workshop-'));
  const home = join(folder, 'home');
  const model = join(folder, 'model');
  mkdirSync(model);
  makeModel(folder, model);
  const chats = join(folder, 'chats.jsonl');
  writeFileSync(
    chats,
    readFileSync('assets/samples/chats.jsonl', 'utf8').split('\n').slice(0, 60).join('\n'),
  );
  const recipe = join(folder, 'recipe.yaml');
  writeFileSync(
    recipe,
    'name: workshop\nmodel: model\ndataset: chats.jsonl\ndevice: cpu\npacking: {budget: 256}\noptimizer: {lr: 3e-3}\nepochs: 1\n',
  );
  return {
    folder,
    home,
    model,
    recipe,
    env: { ...process.env, TESSERA_HOME: home },
    row: (id) => {
      const db = new Database(join(home, 'tessera.sqlite'), { readonly: true });
      const row = db.prepare('SELECT engine FROM runs WHERE id = ?').get(id) as { engine: string | null };
      db.close();
      return row;
    },
    accounts: (id) => {
      const db = new Database(join(home, 'tessera.sqlite'), { readonly: true });
      const rows = db.prepare('SELECT data FROM runAccounts WHERE runId = ?').pluck().all(id) as string[];
      db.close();
      return rows.map((data) => JSON.parse(data) as { total: { steps: number } });
    },
    close: async () => {
      const core = await findCore(home);
      if (core !== undefined) {
        process.kill((await core.call('system:info', {})).pid, 'SIGTERM');
        await core.closed;
      }
      rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
    },
  };
}

/** Random weights in a small shape, with the bundled tokenizer. */
function makeModel(folder: string, model: string): void {
  const file = join(folder, 'config.json');
  writeFileSync(file, JSON.stringify(config));
  execFileSync(engineBinary(), ['init', '--config', file, '--seed', '1', '--out', model]);
  for (const name of [
    'tokenizer.json',
    'tokenizer_config.json',
    'chat_template.jinja',
    'special_tokens_map.json',
  ]) {
    if (existsSync(join(assets, name))) cpSync(join(assets, name), join(model, name));
  }
}

const run = promisify(execFile);

/** The command line as a user calls it. */
export async function tessera(
  shop: Workshop,
  args: string[],
): Promise<{ code: number; out: string; log: string }> {
  try {
    const { stdout, stderr } = await run(process.execPath, ['main/cli/main.ts', ...args], { env: shop.env });
    return { code: 0, out: stdout, log: stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, out: stdout, log: stderr };
  }
}

export async function tesseraJson<T>(shop: Workshop, args: string[]): Promise<T> {
  const { code, out, log } = await tessera(shop, [...args, '--json']);
  if (code !== 0) throw new Error(`tessera ${args.join(' ')} ended with ${code}: ${out}${log}`);
  return JSON.parse(out) as T;
}

export function coreOf(shop: Workshop): Promise<CoreClient> {
  return attachCore(shop.home);
}

/** Waits until the run is as wanted; the test's own limit ends a wait in vain. */
export async function untilRun(
  core: CoreClient,
  id: string,
  holds: (run: RunDetail) => boolean,
): Promise<RunDetail> {
  for (;;) {
    const { run: found } = await core.call('runs:show', { id });
    if (holds(found)) return found;
    await new Promise((done) => setTimeout(done, 50));
  }
}
