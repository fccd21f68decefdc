import type { PackedExamples, PackingLayout, PackingSummary } from '../../contract/packing.ts';
import { examplesOf } from './examplesOf.ts';
import { packedExamples } from './packedExamples.ts';
import type { Examples } from './pieces.ts';
import type { PackingOptions, Plan } from './plan.ts';
import { packAndSummarise } from './summary.ts';

/** Work on a dataset's examples that takes a thread of its own where they are many; `cache` is a token cache's folder. */
export type PackJob =
  | { kind: 'examples'; cache: string }
  | {
      kind: 'plan';
      examples: Examples | { cache: string };
      options: PackingOptions;
      withLayout: boolean;
      /** Of the layout, these bins from the first are enough. */
      mostBins?: number;
    };

export interface PlanAnswer {
  summary: PackingSummary;
  layout?: PackingLayout;
  lengths?: Int32Array;
}

/** @throws {TesseraError} what the packing or the cache refuses */
export function runPackJob(job: PackJob & { kind: 'plan' }): PlanAnswer;
export function runPackJob(job: PackJob): PlanAnswer | PackedExamples;
export function runPackJob(job: PackJob): PlanAnswer | PackedExamples {
  if (job.kind === 'examples') return packedExamples(job.cache);
  const examples = 'cache' in job.examples ? examplesOf(job.examples.cache) : job.examples;
  const { plan, summary } = packAndSummarise({ ...examples, ...job.options });
  if (!job.withLayout) return { summary };
  return job.mostBins === undefined
    ? { summary, layout: layoutOf(plan, plan.bins), lengths: examples.lengths }
    : { summary, layout: layoutOf(plan, job.mostBins) };
}

/** The first bins of a plan, copied where they are not all: a view would be sent with all that it is a view of. */
function layoutOf({ example, start, length, positions, binOffsets }: Plan, mostBins: number): PackingLayout {
  const bins = Math.min(mostBins, binOffsets.length - 1);
  const end = binOffsets[bins] ?? 0;
  const first = (values: Int32Array) => (end === values.length ? values : values.slice(0, end));
  return {
    example: first(example),
    start: first(start),
    length: first(length),
    ...(positions && { positions: first(positions) }),
    binOffsets: binOffsets.slice(0, bins + 1),
  };
}
