import { existsSync } from 'node:fs';
import type { CallContext } from '../../contract/channel.ts';
import type { Recipe } from '../../contract/recipe.ts';
import type { CacheLease } from '../datasets/cache/cacheStore.ts';
import { TokenCache, exampleKinds } from '../datasets/cache/tokenCache.ts';
import type { Datasets } from '../datasets/datasets.ts';
import { defaultReadOptions, type TokenOptions } from '../datasets/options.ts';
import type { TokenSource } from './planRun.ts';

/** The tokens that a recipe trains on; nothing of them is evicted until they are released. */
export interface RunData {
  train: TokenSource;
  /** Absent where the held-out examples come from the same dataset, or from none. */
  evaluation?: TokenSource;
  release: () => void;
}

/**
 * Imports what is given by path, and makes the tokens that this recipe's model, template and supervision need. A run that
 * was `planned` for a cache takes that, as long as it is kept: its files may have gone or changed since, and another version
 * may read them otherwise. Else it takes what was imported from the path then, where nothing is there any more.
 */
export async function openRunData(
  datasets: Datasets,
  recipe: Recipe,
  call: CallContext,
  planned?: string,
): Promise<RunData> {
  const open = (dataset: string) => openTokens(datasets, recipe, dataset, call, planned !== undefined);
  const kept = planned === undefined ? undefined : datasets.kept(planned);
  const train = kept === undefined ? await open(recipe.dataset) : held(kept);
  if (recipe.evalDataset === undefined) return { train: train.source, release: train.release };
  try {
    const evaluation = await open(recipe.evalDataset);
    return {
      train: train.source,
      evaluation: evaluation.source,
      release: () => {
        train.release();
        evaluation.release();
      },
    };
  } catch (error) {
    train.release();
    throw error;
  }
}

async function openTokens(
  datasets: Datasets,
  recipe: Recipe,
  dataset: string,
  call: CallContext,
  isPlanned: boolean,
) {
  const tokens = tokenOptions(recipe);
  const request = {
    paths: [dataset],
    modelDir: recipe.model,
    read: defaultReadOptions,
    tokens,
    name: undefined,
    strict: false,
  };
  const { id } =
    existsSync(dataset) || dataset.startsWith('hub:')
      ? (await datasets.import(request, call)).dataset
      : ((isPlanned ? datasets.importedFrom(dataset) : undefined) ?? datasets.find(dataset));
  const lease = await datasets.tokens(id, { modelDir: recipe.model, tokens }, call);
  return held(lease);
}

function held(lease: CacheLease) {
  try {
    return { source: readSource(lease.dir), release: lease.release };
  } catch (error) {
    lease.release();
    throw error;
  }
}

function tokenOptions({ template, supervise }: Recipe): TokenOptions {
  return {
    ...(template.name !== undefined && { templateName: template.name }),
    templateArguments: template.arguments,
    supervise,
  };
}

/** A finished token cache, as planning sees it. */
export function readSource(folder: string): TokenSource {
  const cache = new TokenCache(folder);
  try {
    const lengths = cache.lengths();
    const text = exampleKinds.indexOf('text');
    return {
      folder,
      key: cache.manifest.key,
      datasetHash: cache.manifest.hashes.dataset,
      lengths,
      firstTarget: cache.firstTargets().map((first, index) => (first < (lengths[index] ?? 0) ? first : -1)),
      isText: cache.kinds().map((kind) => (kind === text ? 1 : 0)),
    };
  } finally {
    cache.close();
  }
}
