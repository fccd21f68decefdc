import type { Handlers } from '../../contract/channel.ts';
import type { packingChannels } from '../../contract/packing.ts';
import type { Datasets } from '../datasets/datasets.ts';
import { examplesOf } from './examplesOf.ts';
import { packedExamples } from './packedExamples.ts';
import type { PackingOptions } from './plan.ts';
import { packAndSummarise } from './summary.ts';

type Channels = typeof packingChannels;
/** The runs know what training costs. */
type CostOf = Handlers<Channels>['packing:cost'];

export function packingHandlers(datasets: Datasets, costOf: CostOf): Handlers<Channels> {
  return {
    'packing:examples': async ({ dataset }, call) => {
      const lease = await datasets.tokens(dataset, {}, call);
      try {
        return packedExamples(lease.dir);
      } finally {
        lease.release();
      }
    },
    'packing:cost': costOf,
    'packing:plan': async ({ source, options, withLayout }, call) => {
      const examples = 'lengths' in source ? source : await examplesOfDataset(datasets, source.dataset, call);
      const { overlong, ...rest } = options;
      const chosen: PackingOptions = { ...rest, ...(overlong && { overlong }) };
      const { plan, summary } = packAndSummarise({ ...examples, ...chosen });
      const { example, start, length, positions, binOffsets } = plan;
      const layout = { example, start, length, binOffsets, ...(positions && { positions }) };
      return { summary, ...(withLayout && { layout, lengths: examples.lengths }) };
    },
  };
}

async function examplesOfDataset(datasets: Datasets, id: string, call: Parameters<Datasets['tokens']>[2]) {
  const lease = await datasets.tokens(id, {}, call);
  try {
    return examplesOf(lease.dir);
  } finally {
    lease.release();
  }
}
