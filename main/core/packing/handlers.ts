import type { Handlers } from '../../contract/channel.ts';
import type { packingChannels } from '../../contract/packing.ts';
import type { Datasets } from '../datasets/datasets.ts';
import { packInThread } from './packThread.ts';

type Channels = typeof packingChannels;
/** The runs know what training costs. */
type CostOf = Handlers<Channels>['packing:cost'];

export function packingHandlers(datasets: Datasets, costOf: CostOf): Handlers<Channels> {
  return {
    'packing:examples': async ({ dataset }, call) => {
      const lease = await datasets.tokens(dataset, {}, call);
      try {
        return await packInThread(
          { kind: 'examples', cache: lease.dir },
          lease.manifest.examples,
          call.signal,
        );
      } finally {
        lease.release();
      }
    },
    'packing:cost': costOf,
    'packing:plan': async ({ source, options, withLayout, mostBins }, call) => {
      const { overlong, ...rest } = options;
      const job = {
        ...{ kind: 'plan' as const, withLayout, options: { ...rest, ...(overlong && { overlong }) } },
        ...(mostBins !== undefined && { mostBins }),
      };
      if ('lengths' in source) {
        const { lengths } = source;
        return packInThread({ ...job, examples: { lengths } }, lengths.length * options.epochs, call.signal);
      }
      const lease = await datasets.tokens(source.dataset, {}, call);
      try {
        const count = lease.manifest.examples * options.epochs;
        return await packInThread({ ...job, examples: { cache: lease.dir } }, count, call.signal);
      } finally {
        lease.release();
      }
    },
  };
}
