/** Dense bf16 products with fp32 sums, and memory: the makers' figures. Copies both read and write. */
export interface DataSheet {
  flopsPerSecond: number;
  bytesPerSecond: number;
}

const sheets: [name: RegExp, teraflops: number, gigabytes: number][] = [
  [/H200/, 989, 4800],
  [/H100.*(HBM3|SXM)/, 989, 3350],
  [/H100.*PCIe/, 756, 2000],
  [/A100.*80GB/, 312, 2039],
  [/L40S/, 362, 864],
  [/RTX 6000 Ada/, 364, 960],
  [/RTX 5090(?! D)/, 209, 1792],
  [/RTX 4090(?! D)/, 165, 1008],
];

/** Undefined for a GPU that is not in the list: nothing is guessed. */
export function dataSheet(name: unknown): DataSheet | undefined {
  if (typeof name !== 'string') return undefined;
  const found = sheets.find(([pattern]) => pattern.test(name));
  return found && { flopsPerSecond: found[1] * 1e12, bytesPerSecond: found[2] * 1e9 };
}
