/** 0.4 s, 42 s, 6 min 36 s, 2 h 05 min */
export function duration(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const total = Math.round(seconds);
  if (total < 60) return `${String(total)} s`;
  const two = (value: number) => String(value).padStart(2, '0');
  if (total < 3600) return `${String(Math.floor(total / 60))} min ${two(total % 60)} s`;
  return `${String(Math.floor(total / 3600))} h ${two(Math.floor(total / 60) % 60)} min`;
}
