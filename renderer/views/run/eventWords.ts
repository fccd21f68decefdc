import { integer } from '../../format.ts';

/** What an event says beyond its kind and its step, in a line: figures short, switches named only where they are on. */
export function eventWords(data: Record<string, unknown>): string {
  return Object.entries(data)
    .flatMap(([key, value]) => {
      if (key === 'step') return [];
      if (value === true) return [key];
      if (typeof value === 'number') return [`${key} ${figure(value)}`];
      return typeof value === 'string' ? [`${key} ${value}`] : [];
    })
    .join(' · ');
}

function figure(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  return Number.isInteger(value) ? integer(value) : String(Number(value.toPrecision(4)));
}
