import { existsSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { counted, listed } from '../../contract/counted.ts';
import { secondsOf, type CostModel } from '../../contract/cost.ts';
import { isOnCpu, rankDevices } from '../../contract/device.ts';
import { toErrorBody } from '../../contract/errors.ts';
import type { Recipe, Sharding } from '../../contract/recipe.ts';
import type { Preflight, PreflightItem } from '../../contract/runs.ts';
import { loadOf } from '../packing/forecast.ts';
import type { Machine } from '../engine/machine.ts';
import { availableMemory } from '../system/doctor.ts';
import { needHeldOut, pastTheEnd, rateItem } from './outOfReach.ts';
import type { PlannedRun } from './planRun.ts';
import type { Proofs } from './proofs.ts';

/** What is known of a run before it starts; a part that failed carries its error instead. */
export interface PreflightFacts {
  recipe: Recipe;
  machine: Machine;
  device: string;
  plan: PlannedRun | Error;
  /** Bytes by part, from the engine that would run it. */
  memory: Record<string, number> | Error;
  /** Changes of the recipe with which it would fit; absent where it fits, or nothing does. */
  fits?: string | undefined;
  /** What the engine proves of itself; absent where it was not asked, because the run stops before it. */
  proofs: Proofs | Error | undefined;
  /** What a checkpoint takes, from the engine that would write it. */
  checkpointBytes?: number | undefined;
  /** What ranks keep a share of. */
  sharding?: Sharding | undefined;
  /** Where it does not fit: how many devices like this one would do. */
  ranksThatWouldDo?: number | undefined;
  /** What training costs, or why that is not known; absent where the run stops before it was asked. */
  cost: CostModel | Error | undefined;
  folder: string;
}

/** One item a question; `stop` where the run cannot start. */
export function judge(facts: PreflightFacts): Preflight {
  const { plan, memory, proofs } = facts;
  const items = [
    dataItem(facts),
    stepsItem(facts),
    ...rateItems(facts),
    heldOutItem(facts),
    memoryItem(facts),
    ...timeItems(facts),
    kernelsItem(facts),
    ...ranksItems(facts),
    ...proofItems(facts),
    diskItem(facts),
  ];
  const known = plan instanceof Error ? undefined : plan;
  const free = freeMemory(facts);
  return {
    ok: items.every(({ status }) => status !== 'stop'),
    items,
    steps: known?.summary.steps ?? 0,
    memory: memory instanceof Error ? {} : memory,
    ...(free !== undefined && { memoryFreeBytes: free }),
    kernels: kernelsOf(facts),
    ...(proofs !== undefined && !(proofs instanceof Error) && proofs),
    ...forecastOf(facts),
  };
}

function failed(name: string, error: Error): PreflightItem {
  const { message, hint } = toErrorBody(error);
  return { name, status: 'stop', message, ...(hint !== undefined && { hint }) };
}

function dataItem({ plan }: PreflightFacts): PreflightItem {
  const name = 'data';
  if (plan instanceof Error) return failed(name, plan);
  const { examples, tokens, dropped, truncated } = plan.summary;
  const lost = dropped.overlong + dropped.nothingToLearn;
  const message = `${counted(examples, 'example')}, ${counted(tokens, 'token')} to train on`;
  if (lost === 0 && truncated.examples === 0) return { name, status: 'pass', message };
  return {
    name,
    status: 'warn',
    message: `${message}; ${count(lost)} dropped, ${count(truncated.examples)} truncated by ${counted(truncated.tokens, 'token')}`,
    hint: 'A larger packing.budget keeps them whole.',
  };
}

function stepsItem({ plan, recipe }: PreflightFacts): PreflightItem {
  const name = 'steps';
  if (plan instanceof Error) return { name, status: 'warn', message: 'unknown without the data' };
  const { steps, bins, budget, fill, strategy, evalExamples } = plan.summary;
  const message = `${counted(steps, 'step')} of ${counted(bins, 'bin')} (${strategy}, budget ${count(budget)}, ${(fill * 100).toFixed(1)} % full)`;
  const missed = pastTheEnd(recipe, steps, evalExamples > 0);
  if (missed.length === 0) return { name, status: 'pass', message };
  return {
    name,
    status: 'warn',
    message: [message, ...missed.map(({ instead }) => instead)].join('; '),
    hint: `Lower ${listed(missed.map(({ key }) => key))}, or train for more steps.`,
  };
}

function rateItems({ plan, recipe }: PreflightFacts): PreflightItem[] {
  return plan instanceof Error ? [] : [rateItem(recipe, plan.summary.steps)];
}

function heldOutItem({ plan, recipe }: PreflightFacts): PreflightItem {
  const name = 'evaluation';
  if (plan instanceof Error) return { name, status: 'warn', message: 'unknown without the data' };
  const { evalExamples } = plan.summary;
  if (evalExamples > 0)
    return { name, status: 'pass', message: `${counted(evalExamples, 'example')} held out` };
  const idle = needHeldOut(recipe);
  return {
    name,
    status: 'warn',
    message: `nothing is held out${idle.length === 0 ? '' : `: ${listed(idle)} will do nothing`}`,
    hint: 'Set evalShare: 0.05 to see what the model learns beyond its data.',
  };
}

type Place = Pick<PreflightFacts, 'machine' | 'device'>;

/** What one rank finds: its share of the machine's memory, or that of the fullest GPU. */
function freeMemory({ machine, device }: Place): number | undefined {
  const ranks = rankDevices(device);
  if (isOnCpu(device)) return availableMemory() / ranks.length;
  const known = machine.devices.flatMap((each) =>
    ranks.includes(each.device) ? (each.freeBytes ?? []) : [],
  );
  return known.length < ranks.length ? undefined : Math.min(...known);
}

/** What a run may take of the memory that is free; the rest is for what others take meanwhile. */
export function usableMemory(place: Place): number {
  return (freeMemory(place) ?? Infinity) * 0.95;
}

function fitsMemory(facts: PreflightFacts): boolean {
  return facts.memory instanceof Error || (facts.memory.total ?? 0) <= usableMemory(facts);
}

/** The memory's own line says the way out. */
function unknownUntilItFits(name: string): PreflightItem {
  return { name, status: 'warn', message: 'not known before it fits into memory' };
}

function memoryItem(facts: PreflightFacts): PreflightItem {
  const { plan, memory, device } = facts;
  const name = 'memory';
  if (plan instanceof Error) return { name, status: 'warn', message: 'unknown without the data' };
  if (memory instanceof Error) {
    const { code } = toErrorBody(memory);
    // The kernels' own line says it, and the way out.
    if (code === 'unsupported_head_size' || code === 'slow_kernel')
      return { name, status: 'warn', message: 'not known before kernels are chosen' };
    return failed(name, memory);
  }
  const total = memory.total ?? 0;
  const free = freeMemory(facts);
  const numRanks = rankDevices(device).length;
  const where = numRanks === 1 ? device : `each of the ${numRanks} ranks of ${device}`;
  const message = `${gib(total)} needed${free === undefined ? '' : `, ${gib(free)} free`} on ${where}`;
  if (fitsMemory(facts)) return { name, status: 'pass', message };
  return { name, status: 'stop', message, hint: wayToFit(facts) };
}

function wayToFit({ fits, ranksThatWouldDo }: PreflightFacts): string {
  const several =
    ranksThatWouldDo === undefined
      ? undefined
      : `${String(ranksThatWouldDo)} GPUs with as much memory (device: cuda:0,1,…) would do`;
  if (fits !== undefined)
    return several === undefined ? `It fits with ${fits}.` : `It fits with ${fits}; or ${several}.`;
  if (several !== undefined) return `No recipe lets this model fit here: ${several}.`;
  return 'No recipe lets this model fit: take a smaller one, or a device with more memory.';
}

function forecastOf({ plan, cost }: PreflightFacts) {
  if (plan instanceof Error || cost === undefined || cost instanceof Error) return undefined;
  return secondsOf(cost, loadOf(plan.train));
}

function timeItems(facts: PreflightFacts): PreflightItem[] {
  const { plan, cost } = facts;
  const name = 'time';
  if (plan instanceof Error) return [];
  if (!fitsMemory(facts) && (cost === undefined || cost instanceof Error)) return [unknownUntilItFits(name)];
  if (cost === undefined) return [];
  if (cost instanceof Error) {
    const { message, hint } = toErrorBody(cost);
    return [{ name, status: 'warn', message: `not known: ${message}`, ...(hint !== undefined && { hint }) }];
  }
  const { seconds, errorSeconds } = secondsOf(cost, loadOf(plan.train));
  const { epochs } = plan.train;
  const each = epochs > 1 ? `, ${duration(seconds / epochs)} an epoch` : '';
  const share = Math.round((100 * errorSeconds) / seconds);
  const from = `${counted(cost.measuredSteps, 'step')} timed on ${cost.device}`;
  const runs = cost.runs === 0 ? '' : ` and ${counted(cost.runs, 'run')}`;
  const message = `${duration(seconds)} ± ${duration(errorSeconds)} (${share} %) for the steps${each}; from ${from}${runs}`;
  return [{ name, status: 'pass', message }];
}

function kernelsOf({ machine, device }: PreflightFacts): NonNullable<Preflight['kernels']> {
  const mine = machine.kernels.filter((kernel) => kernel.device === rankDevices(device)[0]);
  return mine.map(({ layerKind, operation, forward, backward, tier, reason, slow }) => {
    return { layerKind, operation, forward, backward, tier, reason, slow };
  });
}

function kernelsItem(facts: PreflightFacts): PreflightItem {
  const { machine, device, recipe } = facts;
  const name = 'kernels';
  const missing = rankDevices(device).filter(
    (used) => used !== 'cpu' && !machine.devices.some((each) => each.device === used),
  );
  if (missing.length > 0) {
    const known = machine.devices.map((each) => each.device).join(', ');
    return {
      name,
      status: 'stop',
      message: `there is no device ${missing.join(', ')} here`,
      hint: `There are: ${known}.`,
    };
  }
  if (isOnCpu(device)) {
    const cores = `CPU kernels on ${availableParallelism()} cores`;
    const [passedOver] = recipe.device === 'auto' ? machine.devices.filter(({ unserved }) => unserved) : [];
    if (passedOver === undefined) return { name, status: 'pass', message: cores };
    return {
      name,
      status: 'pass',
      message: `${cores}; ${passedOver.device} is left out: ${passedOver.unserved ?? ''}`,
    };
  }
  const slow = whySlow(facts);
  if (slow === undefined) return { name, status: 'pass', message: 'a fast kernel for every operation' };
  return {
    name,
    status: recipe.acceptSlow ? 'warn' : 'stop',
    message: `slow kernels on ${device}: ${slow}`,
    hint: recipe.acceptSlow
      ? 'Accepted by acceptSlow.'
      : 'Use device: cpu, or accept them (acceptSlow: true, or --accept-slow).',
  };
}

/** Why a run on a GPU would not have fast kernels for everything. */
function whySlow({ machine, device, recipe }: PreflightFacts): string | undefined {
  if (recipe.kernels === 'reference') return 'the plain ones were asked for (kernels: reference)';
  if (recipe.precision === 'fp32') return 'only the plain ones compute in fp32 (precision: fp32)';
  const used = rankDevices(device);
  const unserved = machine.devices.find((each) => used.includes(each.device))?.unserved;
  if (unserved !== undefined) return unserved;
  const slow = machine.kernels.filter((kernel) => kernel.slow && kernel.device === used[0]);
  if (slow.length === 0) return undefined;
  return slow.map(({ operation, reason }) => `${operation} (${reason})`).join(', ');
}

const shared: Record<Sharding, string> = {
  optimizer: "each holds the weights and gradients and a share of the optimizer's state (ZeRO-1)",
  gradients: "each holds the weights and a share of the gradients and the optimizer's state (ZeRO-2)",
  weights: "each holds a share of weights, gradients and the optimizer's state (ZeRO-3)",
};

/** How several processes share the run. */
function ranksItems({ device, plan, recipe, sharding }: PreflightFacts): PreflightItem[] {
  const ranks = rankDevices(device);
  if (ranks.length === 1) return [];
  const each = counted(recipe.gradAccumulation, 'bin');
  const { length } = ranks;
  const way = isOnCpu(device) ? 'over local sockets' : 'by NCCL';
  const bins = plan instanceof Error ? 0 : plan.summary.bins % length;
  const uneven = bins === 0 ? '' : `; in the last step some ranks have no bin and add nothing`;
  return [
    {
      name: 'ranks',
      status: 'pass',
      message: `${length} ranks, ${each} each a step, joined ${way}${sharding === undefined ? '' : `; ${shared[sharding]}`}${uneven}`,
    },
  ];
}

function proofItems(facts: PreflightFacts): PreflightItem[] {
  const { proofs, device } = facts;
  const name = 'isolation';
  if (proofs === undefined) return [];
  if (proofs instanceof Error)
    return toErrorBody(proofs).code === 'out_of_memory' && !fitsMemory(facts)
      ? [unknownUntilItFits(name)]
      : [failed(name, proofs)];
  const { isolation, numerics } = proofs;
  const way = isOnCpu(device)
    ? 'Build the engine again, and report this.'
    : 'Use device: cpu, or update the driver.';
  const partly =
    isolation.layers < isolation.modelLayers
      ? ` (the first ${isolation.layers} of ${isolation.modelLayers} layers)`
      : '';
  return [
    isolation.ok
      ? { name: 'isolation', status: 'pass', message: `${isolation.message}${partly}` }
      : {
          name: 'isolation',
          status: 'stop',
          message: `packed examples see each other: ${isolation.message}`,
          hint: `A run would learn across examples. ${way}`,
        },
    numerics.ok
      ? { name: 'numerics', status: 'pass', message: numerics.message }
      : { name: 'numerics', status: 'stop', message: numerics.failures.join('; '), hint: way },
  ];
}

/**
 * Room for the checkpoints that are kept, and for the next one while they are still there. With less than two the run
 * could not keep what it learns; between that and all of them it would skip some.
 */
function diskItem({ recipe, folder, checkpointBytes }: PreflightFacts): PreflightItem {
  const name = 'disk';
  // Unknown to the engine: weights in bf16, with masters and the optimizer's state in fp32.
  const one = checkpointBytes ?? weightBytes(recipe.model) * 7;
  const { keep, best } = recipe.checkpoint;
  const numKept = keep + (best ? 1 : 0) + 1;
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  const message = `${gib(one)} a checkpoint, ${gib(one * numKept)} for all that are kept, ${gib(free)} free in ${folder}`;
  if (free > one * numKept) return { name, status: 'pass', message };
  return {
    name,
    status: free > 2 * one ? 'warn' : 'stop',
    message,
    hint: `${free > 2 * one ? 'Checkpoints for which there is no room are skipped. ' : ''}Free some space, lower checkpoint.keep, or choose another home (--home DIR).`,
  };
}

function weightBytes(model: string): number {
  const single = join(model, 'model.safetensors');
  if (existsSync(single)) return statSync(single).size;
  const index = join(model, 'model.safetensors.index.json');
  if (!existsSync(index)) return 0;
  const { metadata } = JSON.parse(readFileSync(index, 'utf8')) as { metadata?: { total_size?: number } };
  return metadata?.total_size ?? 0;
}

function gib(bytes: number): string {
  return bytes < 2 ** 30 ? `${(bytes / 2 ** 20).toFixed(0)} MiB` : `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}

function duration(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${seconds.toFixed(0)} s`;
  if (seconds < 7200) return `${(seconds / 60).toFixed(0)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}
