import { z } from 'zod';
import type { client } from '../../client.ts';

/** All that the core tells of one dataset. */
export type DatasetDetail = Awaited<ReturnType<typeof client.call<'datasets:show'>>>;

const mapping = z.object({
  columns: z.record(z.string(), z.string()).default({}),
  roles: z.record(z.string(), z.string()).default({}),
});
export type Mapping = z.output<typeof mapping>;

/** The columns and roles that a dataset was imported with. */
export function mappingOf({ options }: Pick<DatasetDetail, 'options'>): Mapping {
  const parsed = mapping.safeParse(options['mapping']);
  return parsed.success ? parsed.data : { columns: {}, roles: {} };
}
