import { basename } from 'node:path';
import { stringify } from 'yaml';
import { counted } from '../../../contract/counted.ts';
import { duration } from '../../../contract/duration.ts';
import { layerName } from '../../../contract/layerName.ts';
import type { RunProfile } from '../../../contract/profile.ts';
import type { RunDetail, RunFigures, WhyFaster } from '../../../contract/runs.ts';
import { version } from '../../version.ts';
import { answersSection } from './answersSection.ts';
import { lossChart, type Points } from './chart.ts';
import { change, escapeHtml, figure, percent, time } from './format.ts';
import { profileSection } from './profileSection.ts';
import { style } from './style.ts';
import { waterfallSection } from './waterfall.ts';

export interface ReportedRun {
  run: RunDetail;
  loss: Points;
  figures: RunFigures;
  /** Absent: no step was profiled. */
  profile?: RunProfile | undefined;
}

/** Of several runs: recipe fields that differ, and why the second is faster than the first. */
export interface ReportedComparison {
  differences: { field: string; values: unknown[] }[];
  whyFaster?: WhyFaster | undefined;
}

const colours = ['a', 'b', 'c', 'd', 'e', 'f'];

/** One page that stands alone: no script, nothing fetched, light and dark. */
export function reportRuns(reported: ReportedRun[], comparison?: ReportedComparison): string {
  const title = reported.map(({ run }) => run.name).join(' · ');
  const curves = reported.map(({ run, loss }, index) => ({
    name: run.name,
    colour: colours[index % colours.length] ?? 'a',
    loss,
    evaluations: run.evaluations,
  }));
  const key = curves.map(({ name, colour }) => `<i class="${colour}">● ${escapeHtml(name)}</i>`).join('');
  return [
    '<!doctype html>',
    '<html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${escapeHtml(title)} – Tessera</title>`,
    `<style>${style}</style></head><body><main>`,
    reported.length > 1 ? `<h1>${escapeHtml(title)}</h1>` : '',
    ...reported.map(({ run, figures }) => heading(run, figures, reported.length === 1)),
    '<h2>Loss</h2>',
    `<p class="key">${key}<i class="soft">band: lowest to highest, line: mean, ○ held out</i></p>`,
    lossChart(curves),
    comparison?.whyFaster === undefined ? '' : waterfallSection(comparison.whyFaster),
    comparison === undefined ? '' : differences(reported, comparison),
    ...reported.map((each) => sections(each, reported.length > 1)),
    `<footer>Tessera ${escapeHtml(version)}, ${time(Date.now())}</footer>`,
    '</main></body></html>',
  ].join('\n');
}

const fallen = (from: number | undefined, to: number | undefined) =>
  from === undefined || to === undefined ? '' : `${change(from, to)} from ${figure(from)}`;

/** @param isAlone of a comparison the title stands above all runs */
function heading(run: RunDetail, { positions, realTokens: real }: RunFigures, isAlone: boolean): string {
  const { firstLoss, lastLoss, evalLossBefore, evalLossAfter } = run;
  const heldOut = ['held-out loss', figure(evalLossAfter), fallen(evalLossBefore, evalLossAfter)] as const;
  const figures: (readonly [string, string, string])[] = [
    ['loss', figure(lastLoss), fallen(firstLoss, lastLoss)],
    ...(evalLossAfter === undefined ? [] : [heldOut]),
    [
      'real tokens a second',
      figure(run.tokensPerSecond),
      positions > 0 ? `${percent(1 - real / positions)} padding` : '',
    ],
    ['steps', figure(run.steps), `of ${figure(run.plannedSteps)}`],
    ['tokens', figure(real), counted(run.plan.examples, 'example')],
    [
      'computing',
      duration(run.activeMs),
      run.forecast === undefined ? '' : `forecast ${duration(run.forecast.seconds * 1000)}`,
    ],
  ];
  return [
    isAlone ? `<h1>${escapeHtml(run.name)}</h1>` : `<h2 class="run">${escapeHtml(run.name)}</h2>`,
    `<p class="soft">${run.status}${run.reason === undefined ? '' : ` (${escapeHtml(run.reason)})`} · ${time(run.startedAtMs)} · <code>${run.id}</code></p>`,
    run.notes === '' ? '' : `<p>${escapeHtml(run.notes)}</p>`,
    '<dl class="figures">',
    ...figures.map(
      ([name, value, note]) => `<div><dt>${name}</dt><dd>${value} <small>${note}</small></dd></div>`,
    ),
    '</dl>',
  ].join('\n');
}

function differences(reported: ReportedRun[], comparison: ReportedComparison): string {
  const shown = comparison.differences.filter(
    ({ field }) => field !== 'name' && !field.startsWith('hashes.'),
  );
  const cell = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value ?? '–'));
  const rows = shown.map(
    ({ field, values }) =>
      `<tr><th>${escapeHtml(field)}</th>${values.map((value) => `<td class="number">${escapeHtml(cell(value).slice(0, 60))}</td>`).join('')}</tr>`,
  );
  const heads = reported.map(({ run }) => `<th class="number">${escapeHtml(run.name)}</th>`).join('');
  return rows.length === 0
    ? ''
    : `<h2>What differs</h2><table><tr><th></th>${heads}</tr>${rows.join('\n')}</table>`;
}

function sections({ run, profile }: ReportedRun, named: boolean): string {
  const of = named ? ` of ${escapeHtml(run.name)}` : '';
  const { plan, hashes } = run;
  return [
    `<h2>Data and packing${of}</h2>`,
    table([
      ['model', escapeHtml(basename(run.model ?? '–'))],
      ['dataset', escapeHtml(basename(run.dataset ?? '–'))],
      ['strategy', plan.strategy],
      ['budget', figure(plan.budget, 'tokens')],
      ['bins', `${figure(plan.bins)}, ${percent(plan.fill)} full`],
      ['tokens', `${figure(plan.tokens)} in ${figure(plan.positions)} computed positions`],
      ['examples', `${figure(plan.examples)} trained, ${figure(plan.evalExamples)} held out`],
      [
        'dropped',
        `${figure(plan.dropped.overlong)} too long, ${figure(plan.dropped.nothingToLearn)} with nothing to learn`,
      ],
      [
        'truncated',
        `${counted(plan.truncated.examples, 'example')} by ${counted(plan.truncated.tokens, 'token')}`,
      ],
    ]),
    preflightSection(run, of),
    `<h2>Recipe${of}</h2><pre>${escapeHtml(stringify(run.recipe).trimEnd())}</pre>`,
    answersSection(run, of),
    profile === undefined ? '' : profileSection(profile, of),
    kernels(run, of),
    `<h2>Environment${of}</h2>`,
    table([
      ['Tessera', escapeHtml(run.codeVersion ?? '–')],
      ['device', run.device ?? '–'],
      ['recipe', `<code>${hashes.recipe.slice(0, 16)}</code>`],
      ['dataset', `<code>${hashes.dataset.slice(0, 16)}</code>`],
      ['plan', `<code>${hashes.plan.slice(0, 16)}</code>`],
    ]),
  ].join('\n');
}

/** What was found before the first step: memory, time, and the proof that packed examples do not see each other. */
function preflightSection({ preflight }: RunDetail, of: string): string {
  if (preflight === undefined || preflight.items.length === 0) return '';
  const rows = preflight.items.map(
    ({ name, status, message, hint }) =>
      `<tr><th>${escapeHtml(name)}</th><td>${escapeHtml(message)}${
        status === 'pass' || hint === undefined ? '' : ` <span class="soft">${escapeHtml(hint)}</span>`
      }</td></tr>`,
  );
  return `<h2>Preflight${of}</h2><table class="told">${rows.join('\n')}</table>`;
}

function kernels({ kernels: list }: RunDetail, of: string): string {
  if (list.length === 0) return '';
  const columns = ['layerKind', 'operation', 'forward', 'backward', 'tier'] as const;
  const head = ['layer', 'operation', 'forward', 'backward', 'tier']
    .map((name) => `<th>${name}</th>`)
    .join('');
  const rows = list.map((kernel) => {
    const cells = columns.map((column) => {
      const value = typeof kernel[column] === 'string' ? kernel[column] : '';
      return `<td>${escapeHtml(column === 'layerKind' ? layerName(value) : value)}</td>`;
    });
    return `<tr>${cells.join('')}</tr>`;
  });
  return `<h2>Kernels${of}</h2><table><tr>${head}</tr>${rows.join('\n')}</table>`;
}

function table(rows: [string, string][]): string {
  return `<table>${rows.map(([name, value]) => `<tr><th>${name}</th><td class="number">${value}</td></tr>`).join('\n')}</table>`;
}
