import { counted } from '../../../contract/counted.ts';
import type { Finding, ProfileRow, StoredProfile } from '../../../contract/profile.ts';
import type { RunDetail } from '../../../contract/runs.ts';
import { binsOf, largerCalls, lessPadding, type Advice, type Bins } from './advice.ts';
import type { Account } from '../account.ts';

interface Verdict {
  headline: string;
  summary: string;
  verdict: Finding[];
}

type Judged = Finding & Pick<Advice, 'isChange'>;

/** Before so many steps memory is touched for the first time, which later ones do not pay. */
const firstSteady = 2;
/** Below this share of a step a finding is no news. */
const worthShare = 0.005;
const matrixOperation = /^linear_/;
/** Between ranks. */
const exchange = /^(reduce_scatter|all_reduce|all_gather)$/;
const ms = (value: number) => {
  const digits = value < 10 ? 2 : 1;
  const form = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return `${value.toLocaleString('en-US', form)} ms`;
};
const percent = (share: number) => `${(share * 100).toFixed(share < 0.01 ? 2 : 1)} %`;
const sumMs = (rows: ProfileRow[]) => rows.reduce((sum, { totalMs }) => sum + totalMs, 0);

/** What holds a profiled step back, in words, and what each remedy would save of it at most. */
export function judgeProfile(profile: StoredProfile, run: RunDetail, account: Account | undefined): Verdict {
  const isDevice = profile.device.length > 0;
  const rows = (isDevice ? profile.device : profile.host).filter(({ operation }) => operation !== 'wait');
  const workMs = sumMs(rows);
  const stepMs = Math.max(profile.milliseconds, profile.spanMs, workMs);
  const matrixMs = sumMs(rows.filter(({ operation }) => matrixOperation.test(operation)));
  const dataMs = account === undefined ? 0 : (account.parts.data ?? 0) / account.total.steps || 0;
  const idleMs = isDevice ? Math.max(0, stepMs - profile.spanMs) : Math.max(0, stepMs - workMs);
  const gapsMs = isDevice ? Math.max(0, profile.spanMs - workMs) : 0;
  const padding = profile.positions > 0 ? 1 - profile.realTokens / profile.positions : 0;

  const bins = binsOf(profile, run);
  const isSteady = (profile.stepsBefore ?? Infinity) >= firstSteady;
  const found: Judged[] = [
    ...(isDevice ? waitingForHost(idleMs, gapsMs, profile.launches, bins) : []),
    ...paddingFinding(padding, rows, bins),
    ...recomputation(profile, rows, run),
    ...slowKernels(rows, run),
    ...dataLoading(dataMs, isDevice),
    ...farFromRoof(rows, bins),
    ...outsideMatrices(rows, workMs, matrixMs),
  ].filter(({ estimateMs }) => isSteady && estimateMs >= worthShare * stepMs);
  found.sort((a, b) => Number(b.isChange) - Number(a.isChange) || b.estimateMs - a.estimateMs);
  const verdict = found.map(({ finding, estimateMs, advice }) => ({ finding, estimateMs, advice }));

  const where = isDevice ? 'The GPU holds' : 'Computing holds';
  const waits = isDevice && idleMs + gapsMs > 0.1 * stepMs;
  const headline = waits
    ? `The GPU waits for the CPU for ${percent((idleMs + gapsMs) / stepMs)} of the step.`
    : `${where} this run back: ${percent(workMs / stepMs)} of the step is work.`;
  const summary = [
    isDevice && profile.launches !== undefined
      ? `The CPU starts a step with ${counted(profile.launches, 'launch', 'launches')}.`
      : '',
    `${percent(workMs > 0 ? matrixMs / workMs : 0)} of the work is matrix products.`,
    `Padding is ${percent(padding)} of the positions.`,
    isSteady
      ? mostToWin(found[0], stepMs)
      : 'It was among the first of its engine, in which memory is new: a later one says what to change.',
  ];
  return { headline, summary: summary.filter((text) => text !== '').join(' '), verdict };
}

function mostToWin(first: Judged | undefined, stepMs: number): string {
  if (first === undefined) return 'Nothing worth changing was found.';
  if (!first.isChange) return 'No change would win much.';
  return `The most to be won is ${ms(first.estimateMs)} of ${ms(stepMs)}: ${first.finding}.`;
}

function waitingForHost(idleMs: number, gapsMs: number, launches: number | undefined, bins: Bins): Judged[] {
  const work = largerCalls(bins, 'so that the CPU starts more work at once');
  const leave = 'Leave the machine’s cores to the engine: it starts the GPU’s work from the CPU.';
  return [
    {
      finding: 'the GPU idle before and after its work, waiting for the CPU',
      estimateMs: idleMs,
      ...(work.isChange ? work : { advice: leave, isChange: true }),
    },
    {
      finding: `gaps between operations${launches === undefined ? '' : `, ${counted(launches, 'launch', 'launches')} a step`}`,
      estimateMs: gapsMs,
      ...largerCalls(bins, 'so that each launch weighs less'),
    },
  ];
}

function paddingFinding(padding: number, rows: ProfileRow[], bins: Bins): Judged[] {
  // Operations within layers cost the padding's share; the head leaves unsupervised rows out.
  const perPosition = rows.filter(({ phase, where }) => phase !== 'optimizer' && where === 'layers');
  return [
    {
      finding: `padding in ${percent(padding)} of the positions`,
      estimateMs: padding * sumMs(perPosition),
      ...lessPadding(bins),
    },
  ];
}

function recomputation(profile: StoredProfile, rows: ProfileRow[], run: RunDetail): Judged[] {
  const asked = run.recipe.recompute;
  const policy = profile.recompute ?? (typeof asked === 'string' ? asked : 'unknown');
  const again = sumMs(rows.filter(({ phase }) => phase === 'recompute'));
  if (again === 0 || policy === 'P0') return [];
  const { withoutRecompute, available } = profile.memory ?? {};
  const gib = (bytes: number) => `${(bytes / 2 ** 30).toFixed(2)} GiB`;
  if (withoutRecompute !== undefined && available !== undefined && withoutRecompute > available) return [];
  const fits =
    withoutRecompute === undefined || available === undefined
      ? ''
      : `: a plan without needs ${gib(withoutRecompute)} of ${gib(available)}`;
  return [
    {
      finding: `recomputation (policy ${policy}) that memory would make unnecessary${fits}`,
      estimateMs: again,
      advice: `Set recompute: ${asked === 'auto' ? 'P0' : 'auto'}.`,
      isChange: true,
    },
  ];
}

function slowKernels(rows: ProfileRow[], run: RunDetail): Judged[] {
  const slow = run.kernels.filter((kernel) => kernel.slow === true);
  return slow.map((kernel) => {
    const operation = String(kernel.operation);
    const mine = rows.filter(({ operation: name }) => name.startsWith(operation));
    return {
      finding: `the slow kernel ${String(kernel.forward)} for ${operation}`,
      estimateMs: mine.reduce((sum, { couldSaveMs, totalMs }) => sum + (couldSaveMs ?? totalMs), 0),
      advice: `${String(kernel.reason)}. A look at the machine says what is missing (tessera doctor).`,
      isChange: true,
    };
  });
}

function dataLoading(dataMs: number, isDevice: boolean): Judged[] {
  // Behind the device the next bins are fetched while it computes.
  return isDevice
    ? []
    : [
        {
          finding: 'fetching the bins from the token cache',
          estimateMs: dataMs,
          advice: 'Put the home (token caches) on a faster disk.',
          isChange: true,
        },
      ];
}

function farFromRoof(rows: ProfileRow[], bins: Bins): Judged[] {
  const byOperation = new Map<string, ProfileRow[]>();
  for (const row of rows) byOperation.set(row.operation, [...(byOperation.get(row.operation) ?? []), row]);
  return [...byOperation].flatMap(([operation, mine]) => {
    const total = sumMs(mine);
    const saved = mine.reduce((sum, { couldSaveMs }) => sum + (couldSaveMs ?? 0), 0);
    if (saved === 0) return [];
    return {
      finding: `${operation} at ${percent(1 - saved / total)} of its limit`,
      estimateMs: saved,
      ...adviceFor(operation, mine, bins),
    };
  });
}

function adviceFor(operation: string, rows: ProfileRow[], bins: Bins): Advice {
  const once = 'more bins a step (gradAccumulation) make it a smaller share.';
  if (exchange.test(operation))
    return { advice: `Ranks exchange gradients and weights once a step: ${once}`, isChange: true };
  if (rows.every(({ phase }) => phase === 'optimizer'))
    return { advice: `It runs once a step: ${once}`, isChange: false };
  return largerCalls(bins, 'so that each call is larger, and faster for it');
}

function outsideMatrices(rows: ProfileRow[], workMs: number, matrixMs: number): Judged[] {
  if (workMs === 0 || rows.some(({ couldSaveMs }) => couldSaveMs !== undefined)) return [];
  return [
    {
      finding: `${percent(1 - matrixMs / workMs)} of the time outside matrix products`,
      estimateMs: workMs - matrixMs,
      advice: 'Without a measured limit of this device, this is what kernels could win at the very most.',
      isChange: false,
    },
  ];
}
