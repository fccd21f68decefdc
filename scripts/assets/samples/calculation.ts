import type { Random } from '../../../main/core/random.ts';
import type { Message } from './chat.ts';

/** Makes one chat about a sum that comes up in a workshop; its numbers are drawn, its answers computed. */
export type Calculation = (random: Random) => Message[];

/** A multiple of `step` from `from` to `to`. */
export function draw(random: Random, from: number, to: number, step = 1): number {
  return from + step * random.below(Math.round((to - from) / step) + 1);
}
