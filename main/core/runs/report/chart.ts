import { escapeHtml, figure } from './format.ts';

/** Columns of equal length; NaN where a point holds no number. */
export interface Points {
  steps: ArrayLike<number>;
  minimum: ArrayLike<number>;
  maximum: ArrayLike<number>;
  mean: ArrayLike<number>;
}

export interface Curve {
  name: string;
  /** Class of its colour in the page's style. */
  colour: string;
  loss: Points;
  /** Held-out losses. */
  evaluations: { step: number; loss: number }[];
}

const width = 860;
const height = 320;
const margin = { left: 56, right: 16, top: 12, bottom: 36 };
const columns = 400;

/** Loss by step as SVG: a band from the lowest to the highest value, a line through the means, held-out points. */
export function lossChart(curves: Curve[]): string {
  const losses = curves
    .flatMap(({ loss, evaluations }) => [
      ...[...Array.from(loss.minimum), ...Array.from(loss.maximum)],
      ...evaluations.map((each) => each.loss),
    ])
    .filter(Number.isFinite);
  if (losses.length === 0) return '<p class="empty">No step was taken.</p>';
  const lastStep = Math.max(1, ...curves.map(({ loss }) => loss.steps[loss.steps.length - 1] ?? 1));
  const ticks = niceTicks(min(losses), max(losses), 5);
  const [low, high] = [ticks[0] ?? 0, ticks.at(-1) ?? 1];
  const x = (step: number) => margin.left + (step / lastStep) * (width - margin.left - margin.right);
  const y = (loss: number) =>
    height - margin.bottom - ((loss - low) / (high - low)) * (height - margin.top - margin.bottom);

  const grid = ticks.map(
    (tick) =>
      `<line class="grid" x1="${margin.left}" x2="${width - margin.right}" y1="${n(y(tick))}" y2="${n(y(tick))}"/>` +
      `<text x="${margin.left - 8}" y="${n(y(tick) + 4)}" text-anchor="end">${figure(tick)}</text>`,
  );
  const stepTicks = niceTicks(0, lastStep, 6).filter((tick) => tick <= lastStep && Number.isInteger(tick));
  const axis = stepTicks.map(
    (tick) =>
      `<text x="${n(x(tick))}" y="${height - margin.bottom + 18}" text-anchor="middle">${figure(tick)}</text>`,
  );
  return [
    `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="Loss by step">`,
    ...grid,
    ...axis,
    `<text x="${width - margin.right}" y="${height - 2}" text-anchor="end">step</text>`,
    ...curves.map((curve) => drawCurve(curve, x, y)),
    '</svg>',
  ].join('\n');
}

function drawCurve(
  { name, colour, loss, evaluations }: Curve,
  x: (step: number) => number,
  y: (loss: number) => number,
): string {
  const columns_ = bucket(loss);
  const upper = columns_.map(({ step, maximum }) => `${n(x(step))},${n(y(maximum))}`);
  const lower = columns_.map(({ step, minimum }) => `${n(x(step))},${n(y(minimum))}`).reverse();
  const line = columns_.map(({ step, mean }) => `${n(x(step))},${n(y(mean))}`).join(' ');
  const points = evaluations
    .filter((each) => Number.isFinite(each.loss))
    .map(
      ({ step, loss: value }) =>
        `<circle cx="${n(x(step))}" cy="${n(y(value))}" r="4.5"><title>held out, step ${step}: ${figure(value)}</title></circle>`,
    );
  return [
    `<g class="curve ${colour}"><title>${escapeHtml(name)}</title>`,
    `<polygon points="${[...upper, ...lower].join(' ')}"/>`,
    `<polyline points="${line}"/>`,
    ...points,
    '</g>',
  ].join('\n');
}

/** At most `columns` columns; a spike stays, as its column's maximum. What is no number is left out. */
function bucket({ steps, minimum, maximum, mean }: Points) {
  const size = Math.max(1, Math.ceil(steps.length / columns));
  const buckets = [];
  for (let at = 0; at < steps.length; at += size) {
    const part = Array.from({ length: Math.min(size, steps.length - at) }, (_, i) => at + i).filter((i) =>
      Number.isFinite(mean[i]),
    );
    const average = (of: ArrayLike<number>) => part.reduce((sum, i) => sum + (of[i] ?? 0), 0) / part.length;
    if (part.length === 0) continue;
    buckets.push({
      step: average(steps),
      minimum: min(part.map((i) => minimum[i] ?? Infinity)),
      maximum: max(part.map((i) => maximum[i] ?? -Infinity)),
      mean: average(mean),
    });
  }
  return buckets;
}

function niceTicks(low: number, high: number, wanted: number): number[] {
  const span = high > low ? high - low : Math.max(Math.abs(high), 1) * 0.1;
  const rough = span / wanted;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const unit = [1, 2, 5, 10].find((each) => each * magnitude >= rough) ?? 10;
  const step = unit * magnitude;
  const first = Math.floor(low / step);
  const last = Math.max(first + 1, Math.ceil(high / step));
  return Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
}

const n = (value: number) => value.toFixed(1);
const min = (values: number[]) => values.reduce((a, b) => Math.min(a, b), Infinity);
const max = (values: number[]) => values.reduce((a, b) => Math.max(a, b), -Infinity);
