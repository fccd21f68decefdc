export interface PaletteEntry {
  id: string;
  title: string;
  /** What kind of thing it is: `Go`, `Run`, `Dataset`, `Theme`. */
  group: string;
  keys?: string;
  /** How it is: a run's state. */
  note?: string;
  run: () => void;
}

/**
 * Entries whose title or group holds the letters of the query in order, best first: a match at word starts beats one
 * inside words, a tight match beats a scattered one.
 */
export function rankEntries(entries: PaletteEntry[], query: string): PaletteEntry[] {
  const letters = query.toLowerCase().replaceAll(' ', '');
  if (letters === '') return entries;
  return entries
    .map((entry) => ({ entry, score: scoreOf(`${entry.title} ${entry.group}`.toLowerCase(), letters) }))
    .filter((scored) => scored.score > 0)
    .sort((a, b) => b.score - a.score)
    .map((scored) => scored.entry);
}

function scoreOf(text: string, letters: string): number {
  const whole = text.indexOf(letters);
  if (whole >= 0) return 1000 - whole + (whole === 0 || text[whole - 1] === ' ' ? 500 : 0);
  let score = 0;
  let from = 0;
  for (const letter of letters) {
    const at = text.indexOf(letter, from);
    if (at < 0) return 0;
    score += at === from ? 8 : text[at - 1] === ' ' ? 6 : 1;
    from = at + 1;
  }
  return score;
}
