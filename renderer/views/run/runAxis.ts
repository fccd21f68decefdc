import type { RunAxis } from '../../../main/contract/runs.ts';
import { compactCount, duration, integer } from '../../format.ts';

export const axisChoices: { value: RunAxis; label: string }[] = [
  { value: 'step', label: 'Step' },
  { value: 'tokens', label: 'Real tokens' },
  { value: 'elapsed', label: 'Time' },
  { value: 'flops', label: 'FLOPs' },
];

/** 1.2 P, 340 G: amounts of floating-point operations. */
export function flopCount(value: number): string {
  const units = ['', 'k', 'M', 'G', 'T', 'P', 'E', 'Z'];
  let scaled = value;
  let unit = 0;
  while (scaled >= 1000 && unit < units.length - 1) {
    scaled /= 1000;
    unit += 1;
  }
  return unit === 0
    ? integer(scaled)
    : `${scaled.toFixed(scaled < 10 ? 2 : scaled < 100 ? 1 : 0)} ${units[unit] ?? ''}`;
}

/** Words for a place on an axis. */
export const placeFormats: Record<RunAxis, (x: number) => string> = {
  step: (x) => integer(Math.round(x)),
  tokens: (x) => compactCount(Math.round(x)),
  elapsed: duration,
  flops: flopCount,
};
