/** Takes names of people and folders out of a report: of a path only its last part is kept. */
export function redact(text: string): string {
  return text.replaceAll(
    /(?:[A-Za-z]:)?(?:[/\\][^\s/\\:'"]+){2,}/g,
    (path) => `…/${path.split(/[/\\]/).at(-1) ?? ''}`,
  );
}
