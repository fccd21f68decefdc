/** An SVG path through the values, evenly spaced, from the top for the largest to the bottom for the smallest. */
export function sparkPath(values: ArrayLike<number>, width: number, height: number): string {
  const finite = Array.from(values).filter((value) => Number.isFinite(value));
  if (finite.length < 2) return '';
  const low = Math.min(...finite);
  const span = Math.max(...finite) - low || 1;
  return finite
    .map((value, i) => {
      const x = (i / (finite.length - 1)) * width;
      const y = height - 1.5 - ((value - low) / span) * (height - 3);
      return `${i === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`;
    })
    .join('');
}
