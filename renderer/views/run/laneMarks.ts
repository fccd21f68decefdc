import type { RunDetail } from '../../../main/contract/runs.ts';
import { decimal } from '../../format.ts';

export interface LaneMark {
  key: string;
  kind:
    'evaluation' | 'best' | 'checkpoint' | 'profile' | 'warning' | 'paused' | 'resumed' | 'sample' | 'note';
  step: number;
  row: 0 | 1;
  text: string;
  /** More of the same kind lie so close that one stands for all. */
  count: number;
  noteId?: number;
}

const warnings = new Set(['failed', 'error', 'coreDied']);
const kinds = new Set(['checkpoint', 'profile', 'warning', 'paused', 'resumed']);

/** Everything that belongs under the loss: evaluations and notes above, what happened below. */
export function laneMarks(
  run: Pick<RunDetail, 'events' | 'evaluations' | 'timeNotes' | 'bestStep'>,
): LaneMark[] {
  const evaluations = run.evaluations.map(({ step, loss }, i): LaneMark => ({
    ...{ key: `e${String(i)}`, step, row: 0, count: 1, text: decimal(loss, 3) },
    kind: step > 0 && step === run.bestStep ? 'best' : 'evaluation',
  }));
  const notes = run.timeNotes.map(({ id, step, text }): LaneMark => ({
    ...{ key: `n${String(id)}`, step, row: 0, count: 1, text, kind: 'note', noteId: id },
  }));
  const events = run.events.flatMap((event, i): LaneMark[] => {
    const kind = warnings.has(event.kind) ? 'warning' : event.kind;
    if (!kinds.has(kind) || event.step === undefined) return [];
    const { message } = event.data;
    const text =
      kind === 'warning' && typeof message === 'string'
        ? message
        : event.kind === 'coreDied'
          ? 'the core died'
          : kind === 'checkpoint'
            ? ''
            : kind;
    return [
      { key: `m${String(i)}`, step: event.step, row: 1, count: 1, text, kind: kind as LaneMark['kind'] },
    ];
  });
  return [...evaluations, ...notes, ...events];
}

/** Of marks of one kind that would lie on one another the first stands for all; notes and the best are never hidden. */
export function clusterMarks(
  marks: LaneMark[],
  share: (step: number) => number,
  minShare: number,
): LaneMark[] {
  const lead = new Map<string, LaneMark>();
  const out: LaneMark[] = [];
  for (const mark of [...marks].sort((a, b) => a.step - b.step)) {
    const before = lead.get(mark.kind);
    const isAlone = mark.kind === 'note' || mark.kind === 'best' || mark.kind === 'warning';
    if (!isAlone && before !== undefined && share(mark.step) - share(before.step) < minShare) {
      before.count += 1;
      continue;
    }
    const own = { ...mark };
    lead.set(mark.kind, own);
    out.push(own);
  }
  return out;
}

/** A mark with the room that its words have before the next one stands in their way. */
export interface FittedMark extends LaneMark {
  textPx: number;
  /** There is room to say for how many it stands. */
  hasCount: boolean;
  /** Its words stand before its sign: behind it the lane ends. */
  isLate: boolean;
}

const signPx = 16;
const gapPx = 8;
const countRoomPx = 24;
const characterPx = 6.5;
const maxTextPx = 240;
/** Less than this would be an ellipsis and nothing else. */
const minTextPx = 24;

/** No mark's words lie over another mark of its row: they are cut, or left to the pointer. */
export function fitMarks(marks: LaneMark[], share: (step: number) => number, widthPx: number): FittedMark[] {
  const takenTo = [-Infinity, -Infinity];
  const sorted = [...marks].sort((a, b) => a.step - b.step);
  return sorted.map((mark, i) => {
    const at = share(mark.step) * widthPx;
    const next = sorted.slice(i + 1).find(({ row }) => row === mark.row);
    const isLate = next === undefined && at > 0.88 * widthPx;
    const room = isLate
      ? at - (takenTo[mark.row] ?? 0)
      : (next === undefined ? widthPx : share(next.step) * widthPx) - at;
    const hasCount = mark.count > 1 && room >= signPx + countRoomPx;
    const countPx = hasCount ? countRoomPx : 0;
    const free = Math.min(maxTextPx, room - signPx - gapPx - countPx);
    const needed = Math.ceil(mark.text.length * characterPx);
    const textPx = needed <= free ? needed : free < minTextPx ? 0 : free;
    takenTo[mark.row] = at + signPx + textPx + countPx;
    return { ...mark, textPx, hasCount, isLate };
  });
}
