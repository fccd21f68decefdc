import type { client } from '../../client.ts';

/** All that the core tells of one dataset. */
export type DatasetDetail = Awaited<ReturnType<typeof client.call<'datasets:show'>>>;
