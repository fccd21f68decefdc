import { expect, test } from 'vitest';
import { runPackJob, type PackJob } from '../../../main/core/packing/packJob.ts';
import { packInThread } from '../../../main/core/packing/packThread.ts';

const lengths = Int32Array.from({ length: 300 }, (_, i) => 1 + ((i * 37) % 64));
const job: PackJob & { kind: 'plan' } = {
  ...{ kind: 'plan', examples: { lengths }, options: { budget: 64, strategy: 'best-fit' }, withLayout: true },
};
const many = Number.MAX_SAFE_INTEGER;

test('many examples are packed in a thread of their own, into the same plan, and refused by the same words', async () => {
  const never = new AbortController().signal;
  const packed = await packInThread(job, many, never);
  const { summary, layout } = runPackJob(job);
  expect(packed.layout).toEqual(layout);
  expect({ ...packed.summary, seconds: 0 }).toEqual({ ...summary, seconds: 0 });

  const first = runPackJob({ ...job, mostBins: 3 }).layout;
  expect(first?.binOffsets).toEqual(layout?.binOffsets.slice(0, 4));
  expect(first?.length).toEqual(layout?.length.slice(0, layout.binOffsets[3]));

  const none = { ...job, examples: { lengths: new Int32Array(0) } };
  await expect(packInThread(none, many, never)).rejects.toMatchObject({ code: 'noExamples' });
});

test('a packing that nobody waits for ends', async () => {
  const abort = new AbortController();
  const packing = packInThread(
    { ...job, examples: { lengths: new Int32Array(2_000_000).fill(9) } },
    many,
    abort.signal,
  );
  abort.abort();
  await expect(packing).rejects.toMatchObject({ code: 'cancelled' });
});
