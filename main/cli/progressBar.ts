import type { Progress } from '../contract/channel.ts';

const barCells = 28;
const redrawMs = 100;
const plainMs = 5_000;
/** Work that says nothing of itself is named after this, with how long it has taken. */
const silentMs = 2_000;
const tickMs = 1_000;
const eighths = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

export interface ProgressBar {
  update: (progress: Progress) => void;
  /** Something is waited for that may say nothing of itself: it is named once it takes seconds. */
  wait: (what: string) => void;
  /** Takes the bar away, so that something else can be written. */
  clear: () => void;
  /** Nothing more is shown. */
  end: () => void;
}

/** A bar redrawn in place on a terminal; elsewhere one line every few seconds. Writes to `stream` (stderr). */
export function createProgressBar(stream: NodeJS.WriteStream): ProgressBar {
  const isTerminal = stream.isTTY;
  let drawnAtMs = -Infinity;
  let visible = false;
  let shown: Progress = { what: '', done: 0 };
  let startedAtMs = performance.now();
  let ticker: ReturnType<typeof setInterval> | undefined;

  function begin(progress: Progress, drawn: number): void {
    shown = progress;
    startedAtMs = performance.now();
    drawnAtMs = drawn;
    ticker ??= setInterval(tick, tickMs).unref();
  }
  function draw(): void {
    drawnAtMs = performance.now();
    const drawn = progressLine(shown, (drawnAtMs - startedAtMs) / 1000);
    const line = writesUtf8(process.env) ? drawn : inAscii(drawn);
    if (isTerminal) stream.write(`\r\u001b[2K${line.slice(0, (stream.columns || 100) - 1)}`);
    else stream.write(`${line}\n`);
    visible = isTerminal;
  }
  /** What counts itself says by itself that it goes on. */
  function tick(): void {
    const since = performance.now() - drawnAtMs;
    if (isCounted(shown) || performance.now() - startedAtMs < silentMs) return;
    if (since >= (isTerminal ? tickMs : plainMs) * 0.9) draw();
  }
  const clear = () => {
    if (visible) stream.write('\r\u001b[2K');
    visible = false;
  };
  return {
    update: (progress) => {
      if (progress.what !== shown.what) begin(progress, -Infinity);
      shown = progress;
      const isLast = progress.total !== undefined && progress.done >= progress.total;
      if (performance.now() - drawnAtMs >= (isTerminal ? redrawMs : plainMs) || isLast) draw();
    },
    wait: (what) => {
      begin({ what, done: 0 }, isTerminal ? -Infinity : performance.now());
    },
    clear,
    end: () => {
      clearInterval(ticker);
      clear();
    },
  };
}

/** Work that nothing is counted of is only named. */
function isCounted({ total, unit = '' }: Progress): boolean {
  return total !== undefined || unit !== '';
}

/** Whether the locale, where it says anything, is one of UTF-8. */
function writesUtf8({ LC_ALL, LC_CTYPE, LANG }: NodeJS.ProcessEnv): boolean {
  const locale = [LC_ALL, LC_CTYPE, LANG].find((value) => value !== undefined && value !== '');
  return locale === undefined || /utf-?8/i.test(locale);
}

function inAscii(line: string): string {
  return line
    .replaceAll('█', '#')
    .replaceAll(/[░▏▎▍▌▋▊▉]/g, '-')
    .replaceAll('…', '...')
    .replaceAll('·', '-')
    .replaceAll('→', '->');
}

/** `Importing  ███████▌      52 %  1,204 / 2,310 rows  3,201 rows/s  0:04 left`; seconds are those spent so far. */
export function progressLine(progress: Progress, seconds: number): string {
  const { what, done, total, unit = '', detail } = progress;
  if (!isCounted(progress)) {
    const taken = seconds * 1000 < silentMs ? [] : [clock(seconds)];
    return [`${what}…`, ...(detail === undefined ? [] : [detail]), ...taken].join('  ');
  }
  const rate = seconds > 0.5 ? done / seconds : undefined;
  const counts = total === undefined ? `${count(done)} ${unit}` : `${count(done)} / ${count(total)} ${unit}`;
  const parts = [counts.trim()];
  if (detail !== undefined) parts.push(detail);
  else if (rate !== undefined && unit !== '') parts.push(`${count(rate)} ${unit}/s`);
  if (total !== undefined && rate !== undefined && rate > 0 && done < total)
    parts.push(`${clock((total - done) / rate)} left`);
  const share = total === undefined || total <= 0 ? undefined : Math.min(1, done / total);
  const bar =
    share === undefined ? '' : `${drawBar(share)} ${String(Math.floor(share * 100)).padStart(3)} %  `;
  return `${what.padEnd(12)} ${bar}${parts.join('  ')}`.trimEnd();
}

function drawBar(share: number): string {
  const filled = Math.round(share * barCells * 8);
  const text = '█'.repeat(Math.floor(filled / 8)) + (eighths[filled % 8] ?? '');
  return text.padEnd(barCells, '░').slice(0, barCells);
}

export function count(value: number): string {
  return value.toLocaleString('en-US', {
    maximumFractionDigits: value < 10 && !Number.isInteger(value) ? 1 : 0,
  });
}

/** `m:ss`, or `h:mm:ss`. */
export function clock(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const tail = `${String(Math.floor(whole / 60) % 60)}:${String(whole % 60).padStart(2, '0')}`;
  return whole < 3600 ? tail : `${String(Math.floor(whole / 3600))}:${tail.padStart(5, '0')}`;
}
