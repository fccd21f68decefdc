import { z } from 'zod';

/** Work done. Positions are those computed, padding included; head rows those of the logits. */
const work = z.object({
  steps: z.number(),
  realTokens: z.number(),
  supervisedTokens: z.number(),
  positions: z.number(),
  headRows: z.number(),
  milliseconds: z.number(),
});
export type Work = z.infer<typeof work>;

const operation = z.object({
  operation: z.string(),
  /** forward | recompute | backward | optimizer */
  phase: z.string(),
  /** `layers`, or `outside`: embedding, head, optimizer, copies. */
  where: z.string(),
  calls: z.number(),
  totalMs: z.number(),
  flops: z.number(),
  bytes: z.number(),
});
export type Operation = z.infer<typeof operation>;

/** Where an engine's time went (`native/train/account.h`). */
export const account = z.object({
  total: work,
  /** Those steps of the total in which something ran for the first time. */
  cold: work,
  /** Milliseconds of the host by named part of the steps and beside them. */
  parts: z.record(z.string(), z.number()),
  /** The steps whose operations were measured: all of them, or on a device that runs behind the host some. */
  sample: work.extend({ spanMs: z.number().optional() }),
  operations: z.array(operation),
});
export type Account = z.infer<typeof account>;

/** The accounts of all engines that worked on a run, as one; undefined where there is none. */
export function sumAccounts(stored: string[]): Account | undefined {
  const [first, ...rest] = stored.map((data) => account.parse(JSON.parse(data)));
  return first === undefined ? undefined : rest.reduce(add, first);
}

function add(a: Account, b: Account): Account {
  const operations = new Map(a.operations.map((each) => [keyOf(each), each]));
  for (const each of b.operations) {
    const mine = operations.get(keyOf(each));
    operations.set(keyOf(each), mine === undefined ? each : { ...each, ...addNumbers(mine, each) });
  }
  return {
    total: addNumbers(a.total, b.total),
    cold: addNumbers(a.cold, b.cold),
    parts: addNumbers(a.parts, b.parts),
    sample: addNumbers(a.sample, b.sample),
    operations: [...operations.values()],
  };
}

const keyOf = ({ operation: name, phase, where }: Operation) => `${name} ${phase} ${where}`;

function addNumbers<T extends object>(a: T, b: T): T {
  const sum = Object.fromEntries(Object.entries(a)) as Record<string, unknown>;
  for (const [key, value] of Object.entries(b)) {
    const mine = sum[key];
    sum[key] = typeof value === 'number' && typeof mine === 'number' ? mine + value : value;
  }
  return sum as T;
}
