import type { WhyFaster } from '../../../contract/runs.ts';
import { escapeHtml } from './format.ts';

const width = 860;
const height = 300;
const margin = { left: 16, right: 16, top: 24, bottom: 56 };
const mostParts = 9;

interface Bar {
  name: string;
  from: number;
  to: number;
  us: number;
  colour: string;
}

/** The largest parts one by one, the rest as one: the bars add up to the difference as the parts do. */
function barsOf({ fromUsPerToken, toUsPerToken, from, to, parts, unexplainedUs }: WhyFaster): Bar[] {
  const large = new Set([...parts].sort((a, b) => Math.abs(b.us) - Math.abs(a.us)).slice(0, mostParts));
  const rest = parts.filter((part) => !large.has(part));
  const steps = [
    ...parts.filter((part) => large.has(part)).map(({ name, us }) => ({ name, us, colour: 'c' })),
    ...(rest.length > 0
      ? [{ name: `${rest.length} others`, us: rest.reduce((sum, { us }) => sum + us, 0), colour: 'd' }]
      : []),
    { name: 'unexplained', us: unexplainedUs, colour: 'soft' },
  ];
  let at = fromUsPerToken;
  const bars = steps.map(({ name, us, colour }) => {
    const begin = at;
    at += us;
    return { name, us, colour, from: begin, to: at };
  });
  return [
    { name: from.name, us: fromUsPerToken, colour: 'a', from: 0, to: fromUsPerToken },
    ...bars,
    { name: to.name, us: toUsPerToken, colour: 'b', from: 0, to: toUsPerToken },
  ];
}

/** From one run's time per real token to the other's, as SVG with the parts as a table below. */
export function waterfallSection(why: WhyFaster): string {
  const { fromUsPerToken, toUsPerToken, parts, unexplainedUs, from, to } = why;
  const gap = toUsPerToken - fromUsPerToken;
  const bars = barsOf(why);
  const top = Math.max(...bars.map((bar) => Math.max(bar.from, bar.to)));
  const y = (us: number) => height - margin.bottom - (us / top) * (height - margin.top - margin.bottom);
  const slot = (width - margin.left - margin.right) / bars.length;
  const drawn = bars.map((bar, index) => {
    const x = margin.left + index * slot + slot * 0.16;
    const high = y(Math.max(bar.from, bar.to));
    const low = y(Math.min(bar.from, bar.to));
    const isEnd = index === 0 || index === bars.length - 1;
    const text = isEnd ? us(bar.us) : signed(bar.us);
    const middle = x + slot * 0.34;
    return [
      `<g class="bar ${bar.colour}"><title>${escapeHtml(bar.name)}: ${text} µs</title>`,
      `<rect x="${n(x)}" y="${n(high)}" width="${n(slot * 0.68)}" height="${n(Math.max(1, low - high))}"/></g>`,
      `<text class="value" x="${n(middle)}" y="${n(high - 5)}" text-anchor="middle">${text}</text>`,
      label(bar.name, middle),
    ].join('');
  });
  const rows = [...parts, { name: 'unexplained', us: unexplainedUs }].map(
    (part) =>
      `<tr><td>${escapeHtml(part.name)}</td><td class="number">${signed(part.us)}</td>` +
      `<td class="number">${gap === 0 ? '' : `${((part.us / gap) * 100).toFixed(1)} %`}</td></tr>`,
  );
  const speed = gap <= 0 ? 'faster' : 'slower';
  const ratio = gap <= 0 ? fromUsPerToken / toUsPerToken : toUsPerToken / fromUsPerToken;
  return [
    `<h2>Why ${escapeHtml(to.name)} is ${ratio.toFixed(2)}× ${speed} than ${escapeHtml(from.name)}</h2>`,
    `<p class="soft">Microseconds per real token, ${us(fromUsPerToken)} → ${us(toUsPerToken)}. The parts add up to the difference.</p>`,
    `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="Waterfall of time per real token">`,
    ...drawn,
    '</svg>',
    `<table><tr><th>part</th><th class="number">µs</th><th class="number">of the gap</th></tr>${rows.join('\n')}</table>`,
  ].join('\n');
}

/** A name under its bar, in up to three lines. */
function label(name: string, x: number): string {
  const words = name.replaceAll('_', '_ ').split(/[ ]+/);
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    const joined = last === undefined ? word : last.endsWith('_') ? last + word : `${last} ${word}`;
    if (last !== undefined && joined.length <= 12) lines[lines.length - 1] = joined;
    else lines.push(word);
  }
  return lines
    .slice(0, 3)
    .map(
      (line, i) =>
        `<text x="${n(x)}" y="${height - margin.bottom + 15 + i * 13}" text-anchor="middle">${escapeHtml(line.slice(0, 16))}</text>`,
    )
    .join('');
}

const n = (value: number) => value.toFixed(1);
const us = (value: number) => value.toFixed(value < 10 ? 3 : value < 100 ? 2 : 1);
const signed = (value: number) => `${value > 0 ? '+' : value < 0 ? '−' : ''}${us(Math.abs(value))}`;
