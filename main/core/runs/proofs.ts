import { createHash } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { rankDevices } from '../../contract/device.ts';
import type { Recipe } from '../../contract/recipe.ts';
import { isolationProof, numericsTest } from '../../contract/runs.ts';
import { engineBinary } from '../engine/binary.ts';
import { askEngine } from '../engine/askEngine.ts';
import { runFiles } from './runFolder.ts';

const proofs = z.object({ isolation: isolationProof, numerics: numericsTest });
export type Proofs = z.infer<typeof proofs>;

export interface ProofInputs {
  folder: string;
  recipe: Recipe;
  /** Folder of the token cache. */
  cache: string;
  /** Hash of the plan that lies in `folder`. */
  planHash: string;
  device: string;
  /** The policy of recomputation that the run will have. */
  recompute: string;
}

/**
 * What the engine proves of itself before it trains: that packed examples do not see each other, on a pack of the
 * run's own data, and that its kernels compute what fp64 does, in the model's sizes, on the run's device and by its kernels. The same
 * engine, model, device and plan are asked once.
 */
export class ProofDesk {
  private readonly known = new Map<string, Proofs>();

  /** @throws {TesseraError} what keeps the engine from answering */
  async prove(inputs: ProofInputs, signal: AbortSignal): Promise<Proofs> {
    const { folder, recipe, cache, recompute } = inputs;
    const { model, kernels = 'fast', precision, acceptSlow } = recipe;
    // Several devices run the same kernels: the first answers for all.
    const device = rankDevices(inputs.device)[0] ?? inputs.device;
    const by = ['--device', device, '--policy', recompute, '--kernels', kernels, '--precision', precision];
    if (acceptSlow) by.push('--accept-slow');
    const key = [fileStamp(engineBinary()), modelStamp(model), inputs.planHash, ...by].join();
    const found = this.known.get(key);
    if (found !== undefined) return found;
    const args = ['verify', '--isolation', '--numerics', '--model', model, '--cache', cache];
    args.push('--plan', runFiles(folder).plan, ...by);
    const answer = await askEngine(proofs, args, { signal, maySayNo: true });
    if (this.known.size >= mostKnown) this.known.clear();
    this.known.set(key, answer);
    return answer;
  }
}

const mostKnown = 64;

/** Path, age and size of a file. */
export function fileStamp(path: string): string {
  const { mtimeMs, size } = statSync(path);
  return `${path} ${String(mtimeMs)} ${String(size)}`;
}

/** Of which files a model folder consists, and how new they are. */
export function modelStamp(model: string): string {
  const files = readdirSync(model).filter((name) => /\.(safetensors|json)$/.test(name));
  return createHash('sha256')
    .update(
      files
        .sort()
        .map((name) => fileStamp(join(model, name)))
        .join('\n'),
    )
    .digest('hex');
}
