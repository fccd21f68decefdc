import type { WhyFaster } from '../../contract/runs.ts';
import type { Account, Operation, Work } from './account.ts';

type Kind = WhyFaster['parts'][number]['kind'];
type Driver = 'positions' | 'headRows' | 'steps';

/** Microseconds per real token of one place that time goes to: how many units of work a token needs × what one costs. */
interface Cost {
  name: string;
  kind: Kind;
  driver: Driver | undefined;
  unitsPerToken: number;
  usPerUnit: number;
}

const drivers: Record<Driver, { name: string; kind: Kind }> = {
  positions: { name: 'padding', kind: 'padding' },
  headRows: { name: 'rows in the head', kind: 'head' },
  steps: { name: 'updates per token', kind: 'updates' },
};
const headOperations = /^(linear_|cross_entropy|gather_rows|loss_sum)/;
const perStepOperations = /^(zero|copy|upload|download|wait|synchronize|launch)/;
/** Named by the engine; in the steps' time. Evaluation, checkpoints and the like stand beside the steps. */
const stepParts = ['data', 'engine', 'reporting'];

/**
 * What makes the second run's time per real token differ from the first's. Each operation's time is units of work per
 * real token (positions, rows of the head, updates) × cost of a unit; a change of the units goes to the driver
 * (positions: padding), a change of the cost to the operation, each weighted with the mean of the other, so that the
 * parts add up exactly. What no part names is `unexplainedUs`.
 * @param whole also evaluation, checkpoints and loading, in the times and in the parts
 */
export function whyFaster(a: Account, b: Account, whole = false): Omit<WhyFaster, 'from' | 'to'> {
  const names = new Map<string, [Cost | undefined, Cost | undefined]>();
  for (const [side, of] of [a, b].entries()) {
    for (const cost of costs(of, whole)) {
      const pair = names.get(cost.name) ?? [undefined, undefined];
      pair[side] = cost;
      names.set(cost.name, pair);
    }
  }
  const parts = new Map<string, WhyFaster['parts'][number]>();
  const give = (name: string, kind: Kind, us: number) => {
    const part = parts.get(name) ?? { name, kind, us: 0 };
    part.us += us;
    parts.set(name, part);
  };
  for (const [name, [from, to]] of names) {
    const one = from ?? to;
    if (one === undefined) continue;
    const units = [from ?? units0(a, one), to ?? units0(b, one)].map(({ unitsPerToken }) => unitsPerToken);
    const unitCosts = [from?.usPerUnit ?? 0, to?.usPerUnit ?? 0];
    const [unitsA = 0, unitsB = 0] = units;
    const [costA = 0, costB = 0] = unitCosts;
    if (one.driver !== undefined) {
      const driver = drivers[one.driver];
      give(driver.name, driver.kind, ((unitsB - unitsA) * (costA + costB)) / 2);
    }
    give(name, one.kind, ((costB - costA) * (unitsA + unitsB)) / 2);
  }
  const fromUsPerToken = usPerToken(a, whole);
  const toUsPerToken = usPerToken(b, whole);
  const listed = [...parts.values()]
    .filter(({ us }) => us !== 0)
    .sort((x, y) => order(x.kind) - order(y.kind) || Math.abs(y.us) - Math.abs(x.us));
  const explained = listed.reduce((sum, { us }) => sum + us, 0);
  return {
    fromUsPerToken,
    toUsPerToken,
    parts: listed,
    unexplainedUs: toUsPerToken - fromUsPerToken - explained,
    beside: besideParts(a, b),
  };
}

/** Every named place that a run's time goes to. */
function costs(of: Account, whole: boolean): Cost[] {
  const byName = new Map<string, Cost>();
  const steadyMs = steadyStepMs(of);
  const { spanMs } = of.sample;
  // Events around each operation lengthen a sampled step: its times are brought down to the steps without them.
  const scale = spanMs === undefined ? 1 : Math.min(1, (steadyMs * of.sample.steps) / spanMs);
  for (const operation of of.operations) {
    const driver = driverOf(operation);
    const name = nameOf(operation);
    const usPerUnit = perUnit(operation.totalMs * scale, of.sample[driver]);
    const known = byName.get(name);
    if (known !== undefined && known.driver === driver) known.usPerUnit += usPerUnit;
    else
      byName.set(name, {
        name,
        kind: operation.phase === 'recompute' ? 'recompute' : 'kernel',
        driver,
        unitsPerToken: of.total[driver] / of.total.realTokens,
        usPerUnit,
      });
  }
  const perToken = (name: string, kind: Kind, ms: number): Cost => ({
    ...{ name, kind, driver: undefined, unitsPerToken: 1 },
    usPerUnit: perUnit(ms, of.total.realTokens),
  });
  const operationsMs = of.operations.reduce((sum, { totalMs }) => sum + totalMs, 0);
  // Behind the device the host's work is hidden: there the device's own gaps are what a step waits for.
  const host: Cost[] =
    spanMs !== undefined
      ? [
          {
            ...{ name: 'launch gaps', kind: 'gaps' as const, driver: undefined },
            unitsPerToken: of.total.positions / of.total.realTokens,
            usPerUnit: perUnit(Math.max(0, spanMs - operationsMs) * scale, of.sample.positions),
          },
          perToken('warm-up', 'host', of.cold.milliseconds - of.cold.steps * steadyMs),
        ]
      : [
          perToken('data', 'data', of.parts.data ?? 0),
          perToken('between operations', 'gaps', (of.parts.engine ?? 0) - operationsMs),
          perToken('reporting', 'host', of.parts.reporting ?? 0),
        ];
  const beside = whole
    ? Object.entries(of.parts)
        .filter(([name]) => !stepParts.includes(name))
        .map(([name, ms]) => perToken(name, 'beside', ms))
    : [];
  return [...byName.values(), ...host, ...beside];
}

/** A step's time without those that ran something for the first time. */
function steadyStepMs({ total, cold }: Account): number {
  const steps = total.steps - cold.steps;
  return steps > 0 ? (total.milliseconds - cold.milliseconds) / steps : total.milliseconds / total.steps;
}

/** A cost that only the other run has: as many units as this run's tokens would need of it. */
function units0(of: Account, { driver, unitsPerToken }: Cost): { unitsPerToken: number } {
  return { unitsPerToken: driver === undefined ? unitsPerToken : of.total[driver] / of.total.realTokens };
}

function driverOf({ operation, phase, where }: Operation): Driver {
  if (phase === 'optimizer' || perStepOperations.test(operation)) return 'steps';
  return where === 'outside' && headOperations.test(operation) ? 'headRows' : 'positions';
}

function nameOf({ operation, phase, where }: Operation): string {
  if (phase === 'recompute') return `${operation} (recompute)`;
  return where === 'outside' && operation.startsWith('linear_') ? `${operation} (head)` : operation;
}

function usPerToken({ total, parts }: Account, whole: boolean): number {
  const beside = Object.entries(parts)
    .filter(([name]) => whole && !stepParts.includes(name))
    .reduce((sum, [, ms]) => sum + ms, 0);
  return perUnit(total.milliseconds + beside, total.realTokens);
}

function besideParts(a: Account, b: Account): WhyFaster['beside'] {
  const names = [...new Set([a, b].flatMap(({ parts }) => Object.keys(parts)))];
  return names
    .filter((name) => !stepParts.includes(name))
    .map((name) => ({
      name,
      fromUs: perUnit(a.parts[name] ?? 0, a.total.realTokens),
      toUs: perUnit(b.parts[name] ?? 0, b.total.realTokens),
    }));
}

const perUnit = (ms: number, units: number) => (units > 0 ? (ms * 1000) / units : 0);

const kinds: Kind[] = ['padding', 'updates', 'head', 'recompute', 'kernel', 'gaps', 'data', 'host', 'beside'];
const order = (kind: Kind) => kinds.indexOf(kind);

/** Whether an account can be compared: at least one step of it was measured. */
export function isMeasured({ total, sample }: Account): boolean {
  const hasWork = ({ steps, realTokens }: Work) => steps > 0 && realTokens > 0;
  return hasWork(total) && hasWork(sample);
}
