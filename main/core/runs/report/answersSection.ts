import type { RunDetail } from '../../../contract/runs.ts';
import { escapeHtml, figure } from './format.ts';

/** What the model answered to each of the recipe's prompts, after every evaluation; a run without prompts has none. */
export function answersSection({ samples }: Pick<RunDetail, 'samples'>, of: string): string {
  if (samples.length === 0) return '';
  const prompts = [...new Map(samples.map(({ position, prompt }) => [position, prompt]))];
  const tables = prompts.map(([position, prompt]) => {
    const rows = samples
      .filter((sample) => sample.position === position)
      .map(
        ({ step, text }) =>
          `<tr><th>${step === 0 ? 'before' : `step ${figure(step)}`}</th><td>${text === '' ? 'nothing: it ended at once' : escapeHtml(text)}</td></tr>`,
      );
    return `<p><b>${escapeHtml(prompt)}</b></p><table class="told">${rows.join('\n')}</table>`;
  });
  return `<h2>Answers${of}</h2>${tables.join('\n')}`;
}
