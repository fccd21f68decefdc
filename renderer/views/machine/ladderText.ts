import type { Ladder, Rung } from '../../../main/contract/bench.ts';
import { decimal } from '../../format.ts';

const words: Record<string, { title: string; what: string }> = {
  'reference padded': {
    title: 'Reference kernels, padded',
    what: 'The plain kernels that the fast ones are checked against; each row is as long as the longest of its batch.',
  },
  'fast padded': {
    title: 'Fast kernels, padded',
    what: 'The kernels that train here, over the same batches: padding is computed too.',
  },
  'fast best-fit': {
    title: 'Fast kernels, packed',
    what: 'The same kernels over full bins: no position is padding.',
  },
};

/** What a rung is called, and what it changes. */
export function rungWords({ kernels, strategy }: Rung): { title: string; what: string } {
  return words[`${kernels} ${strategy}`] ?? { title: `${kernels} kernels, ${strategy}`, what: '' };
}

/** The whole ladder in one sentence; below one hundredth there is no gain to speak of. */
export function ladderSentence({ rungs, deviceName, device }: Ladder): string {
  const [, fast, packed] = rungs;
  if (fast === undefined || packed === undefined) return '';
  const gain = (factor: number) =>
    factor >= 1.005 ? `${decimal(factor, 2)} times as fast` : `no faster (${decimal(factor, 2)}×)`;
  return `On ${deviceName ?? device} the fast kernels are ${gain(fast.factor)}, and packing on top is ${gain(packed.factor)}.`;
}

/** Share of the widest bar. */
export function barShare(rung: Rung, { rungs }: Ladder): number {
  return rung.tokensPerSecond / Math.max(...rungs.map(({ tokensPerSecond }) => tokensPerSecond));
}
