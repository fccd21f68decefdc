const shownChars = 320;

/** The beginning of a text on one line: what a cell of a grid shows. */
export function oneLine(text: string): string {
  return text
    .slice(0, shownChars)
    .trim()
    .replace(/\s*\n+\s*/g, ' ↵ ');
}
