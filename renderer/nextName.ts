/** The first of `name 2`, `name 3`, … that is not taken; `name 4` goes on with 5. */
export function nextName(name: string, taken: ReadonlySet<string>): string {
  const [, stem = name, number = '1'] = /^(.*\S)\s+(\d{1,6})$/.exec(name) ?? [];
  let next = Number(number) + 1;
  while (taken.has(`${stem} ${String(next)}`)) next += 1;
  return `${stem} ${String(next)}`;
}
