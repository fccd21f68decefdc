import { isOnCpu, rankDevices } from '../../../contract/device.ts';
import type { StoredProfile } from '../../../contract/profile.ts';
import type { RunDetail } from '../../../contract/runs.ts';

export interface Advice {
  advice: string;
  /** The recipe or the machine can be changed so; else it is only told how it is. */
  isChange: boolean;
}

/** What bins a profiled step was made of. */
export interface Bins {
  /** Positions computed in one bin. */
  positions: number;
  /** Share of the budget that holds tokens, over the whole plan. */
  fill: number;
  /** A position more in a call costs less than one. */
  areSmall: boolean;
  /** Examples are put side by side as tightly as they fit. */
  arePacked: boolean;
}

/** Positions from which on a call keeps a device busy. */
const enough = { cpu: 512, gpu: 8192 };
/** Emptier bins are filled before they are made larger. */
const full = 0.6;
const tight = new Set(['best-fit', 'ffd', 'bfd']);

export function binsOf(profile: StoredProfile, { plan, recipe, device }: RunDetail): Bins {
  const { fill, strategy } = plan;
  const numBins = Number(recipe.gradAccumulation ?? 1) * rankDevices(device ?? 'cpu').length;
  const positions = profile.positions / numBins;
  const onCpu = device === undefined ? profile.device.length === 0 : isOnCpu(device);
  return {
    positions,
    fill,
    areSmall: positions < (onCpu ? enough.cpu : enough.gpu),
    arePacked: tight.has(strategy),
  };
}

/** How each call gets more to do, and what that does: `so that each launch weighs less`. */
export function largerCalls(bins: Bins, soThat: string): Advice {
  const { fill, areSmall, arePacked } = bins;
  if (!areSmall)
    return { advice: 'No setting makes it faster: this is what its kernels leave.', isChange: false };
  if (fill >= full) return { advice: `Set a larger packing.budget, ${soThat}.`, isChange: true };
  const words = `The bins are ${(fill * 100).toFixed(0)} % full`;
  const way = arePacked
    ? 'more examples, or a packing.budget that suits their lengths, fill them'
    : 'set packing.strategy to best-fit';
  return { advice: `${words}: ${way}, ${soThat}.`, isChange: true };
}

/** How padding becomes less. */
export function lessPadding({ fill, arePacked }: Bins): Advice {
  if (!arePacked) return { advice: 'Set packing.strategy to best-fit.', isChange: true };
  const advice =
    fill < full
      ? 'The bins are unlike one another, and each is computed as long as the longest: a smaller packing.budget evens them.'
      : 'A packing.budget that their lengths fill better leaves less: the packing view shows what each leaves.';
  return { advice, isChange: true };
}
