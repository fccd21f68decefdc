/** What becomes of an ended run that is resumed; `saved` is the step of its newest checkpoint. */
export function resumeHint(id: string, saved: number | null | undefined): string {
  const from =
    saved === null || saved === undefined ? 'it starts from the beginning' : `it goes on from step ${saved}`;
  return `Resume it (tessera resume ${id}): ${from}.`;
}
