import type { WhyFaster } from '../contract/runs.ts';
import { textTable } from './runText.ts';

const smallShare = 0.005;

/** The waterfall as a table: microseconds per real token, and each part's share of the difference. */
export function waterfallText({
  from,
  to,
  fromUsPerToken,
  toUsPerToken,
  parts,
  unexplainedUs,
}: WhyFaster): string {
  const gap = toUsPerToken - fromUsPerToken;
  const line = (name: string, us: number) => [
    name,
    `${us > 0 ? '+' : ''}${us.toFixed(3)}`,
    gap === 0 ? '' : `${((us / gap) * 100).toFixed(1)} %`,
  ];
  const isSmall = ({ us }: { us: number }) => Math.abs(us) < smallShare * Math.abs(gap);
  const small = parts.filter(isSmall);
  const speed = gap <= 0 ? 'faster' : 'slower';
  const ratio = gap <= 0 ? fromUsPerToken / toUsPerToken : toUsPerToken / fromUsPerToken;
  return [
    `Why ${to.name} (${to.id}) is ${ratio.toFixed(2)}× ${speed} than ${from.name} (${from.id})`,
    textTable(
      ['µs per real token', '', 'of the gap'],
      [
        [from.name, fromUsPerToken.toFixed(3), ''],
        ...parts.filter((part) => !isSmall(part)).map(({ name, us }) => line(name, us)),
        ...(small.length > 0
          ? [
              line(
                `${small.length} smaller parts`,
                small.reduce((sum, { us }) => sum + us, 0),
              ),
            ]
          : []),
        line('unexplained', unexplainedUs),
        [to.name, toUsPerToken.toFixed(3), ''],
      ],
      [1, 2],
    ),
  ].join('\n');
}
