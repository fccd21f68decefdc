import type { RunProfile } from '../../../contract/profile.ts';
import { escapeHtml, figure } from './format.ts';

const mostRows = 16;

/** What the profiled step says of a run: the verdict, what would help, and the longest operations. */
export function profileSection(profile: RunProfile, of: string): string {
  const rows = profile.device.length > 0 ? profile.device : profile.host;
  const total = rows.reduce((sum, { totalMs }) => sum + totalMs, 0);
  const operations = [...rows]
    .sort((a, b) => b.totalMs - a.totalMs)
    .slice(0, mostRows)
    .map(({ operation, phase, calls, averageUs, totalMs, percentOfRoof }) =>
      cells([
        `<code>${escapeHtml(operation)}</code> <span class="soft">${escapeHtml(phase)}</span>`,
        figure(calls),
        figure(averageUs),
        figure(totalMs),
        `${((totalMs / total) * 100).toFixed(1)} %`,
        percentOfRoof === undefined ? 'n/a' : `${percentOfRoof.toFixed(0)} %`,
      ]),
    );
  const findings = profile.verdict
    .slice(0, 5)
    .map(({ finding, estimateMs, advice }) =>
      cells([
        `${escapeHtml(finding)} <span class="soft">${escapeHtml(advice)}</span>`,
        `${figure(estimateMs)} ms`,
      ]),
    );
  return [
    `<h2>Profile${of}</h2>`,
    `<p><b>${escapeHtml(profile.headline)}</b> ${escapeHtml(profile.summary)}</p>`,
    findings.length === 0
      ? ''
      : `<table>${head(['what would save most', 'of a step'])}${findings.join('\n')}</table>`,
    `<p class="soft">Step ${figure(profile.step)}, ${figure(profile.milliseconds)} ms; the ${operations.length} longest of ${rows.length} operations.</p>`,
    `<table>${head(['operation', 'calls', 'average µs', 'total ms', 'share', 'of its limit'])}${operations.join('\n')}</table>`,
  ].join('\n');
}

const head = (names: string[]) =>
  `<tr>${names.map((name, i) => `<th${i === 0 ? '' : ' class="number"'}>${name}</th>`).join('')}</tr>`;
const cells = (values: string[]) =>
  `<tr>${values.map((value, i) => `<td${i === 0 ? '' : ' class="number"'}>${value}</td>`).join('')}</tr>`;
