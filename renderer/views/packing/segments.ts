import { counted } from '../../../main/contract/counted.ts';
import type { ExampleTokens } from '../../../main/contract/datasets.ts';
import { integer } from '../../format.ts';
import { lastAtOrBefore, type Scene } from './scene.ts';

/** A placement as token level shows it. */
export interface Segment {
  example: number;
  /** First token of the example that stands here. */
  start: number;
  /** First position in the bin. */
  at: number;
  length: number;
  /** Positions that are computed for it. */
  positions: number;
  /** Its tokens in sight, the last exclusive. */
  from: number;
  to: number;
}

/** The segments of a bin that stand at positions `left … right`. */
export function segmentsInSight(scene: Scene, bin: number, left: number, right: number): Segment[] {
  const { layout, begin } = scene;
  const [first, end] = [layout.binOffsets[bin] ?? 0, layout.binOffsets[bin + 1] ?? 0];
  const found: Segment[] = [];
  for (let i = Math.max(first, lastAtOrBefore(begin, left, first, end)); i < end; i++) {
    const [at, length] = [begin[i] ?? 0, layout.length[i] ?? 0];
    if (at > right) break;
    const example = layout.example[i] ?? 0;
    found.push({
      ...{ example, start: layout.start[i] ?? 0, at, length, positions: layout.positions?.[i] ?? length },
      from: Math.max(0, Math.floor(left - at)),
      to: Math.min(length, Math.ceil(right - at)),
    });
  }
  return found;
}

/** What stands above a segment: its name, and what else is said of it. */
export function titleOf({ example, at, length }: Segment): { name: string; facts: string } {
  const bounds = `cu_seqlens ${integer(at)} to ${integer(at + length)}`;
  return { name: `Example ${integer(example + 1)}`, facts: `${counted(length, 'token')}, ${bounds}` };
}

/** Whether token t of a segment is learned: its first is predicted by nothing. */
export function isLearned(words: ExampleTokens | undefined, { start }: Segment, t: number): boolean {
  return t > 0 && words?.supervised[start + t] === 1;
}
