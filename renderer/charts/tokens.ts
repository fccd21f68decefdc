/** The value of a design token as the document shows it now: canvases need colours, not their names. */
export function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** `#rrggbb` with an opacity. */
export function withAlpha(hex: string, alpha: number): string {
  const value = Number.parseInt(hex.slice(1), 16);
  return `rgba(${String(value >> 16)},${String((value >> 8) & 255)},${String(value & 255)},${String(alpha)})`;
}
