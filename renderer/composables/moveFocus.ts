/**
 * The keyboard within a row of buttons that is one stop for the tab key: arrows go from one to the next, Home and End to
 * the ends. For `keydown` on the row.
 * @returns the button that has the focus now; undefined where the key means nothing here
 */
export function moveFocus(event: KeyboardEvent): HTMLElement | undefined {
  const row = event.currentTarget;
  if (!(row instanceof HTMLElement) || event.ctrlKey || event.metaKey || event.altKey) return undefined;
  const buttons = [...row.querySelectorAll<HTMLElement>('button:not(:disabled)')];
  const at = buttons.findIndex((button) => button === document.activeElement);
  const last = buttons.length - 1;
  const wanted: Record<string, number> = {
    ArrowRight: at === last ? 0 : at + 1,
    ArrowDown: at === last ? 0 : at + 1,
    ArrowLeft: at <= 0 ? last : at - 1,
    ArrowUp: at <= 0 ? last : at - 1,
    Home: 0,
    End: last,
  };
  const next = buttons[wanted[event.key] ?? -1];
  if (next === undefined) return undefined;
  event.preventDefault();
  next.focus();
  return next;
}
