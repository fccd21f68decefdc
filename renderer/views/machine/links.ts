/** Bytes a second and lane each way, after the line code: PCI Express 1.0 to 6.0. */
const pcieLaneRate = [0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9];
const na = 'n/a';

const numberOf = (gpu: Record<string, unknown>, key: string) =>
  typeof gpu[key] === 'number' ? gpu[key] : undefined;
const gigabytes = (rate: number) => `${(rate / 1e9).toFixed(rate < 1e10 ? 1 : 0)} GB/s`;

/** How a GPU is joined to the computer: `5.0 × 16, 63 GB/s each way`; less than it could do is said. */
export function pcieText(gpu: Record<string, unknown>): string {
  const generation = numberOf(gpu, 'pcieGeneration');
  const width = numberOf(gpu, 'pcieWidth');
  if (generation === undefined || width === undefined) return na;
  const lane = pcieLaneRate[generation];
  const rate = lane === undefined ? '' : `, ${gigabytes(lane * width)} each way`;
  const most = [
    numberOf(gpu, 'pcieMaxGeneration') ?? generation,
    numberOf(gpu, 'pcieMaxWidth') ?? width,
  ] as const;
  const isLess = most[0] > generation || most[1] > width;
  const note = isLess ? ` (of ${String(most[0])}.0 × ${String(most[1])}; an idle link slows down)` : '';
  return `${String(generation)}.0 × ${String(width)}${rate}${note}`;
}

/** `18 links of version 4, 478 GB/s each way`; none where it has none. */
export function nvlinkText(gpu: Record<string, unknown>): string {
  const count = numberOf(gpu, 'nvlinks');
  if (count === undefined) return na;
  if (count === 0) return 'none';
  const version = numberOf(gpu, 'nvlinkVersion');
  const rate = numberOf(gpu, 'nvlinkBytesPerSecond');
  return [
    `${String(count)} ${count === 1 ? 'link' : 'links'}${version === undefined ? '' : ` of version ${String(version)}`}`,
    ...(rate === undefined ? [] : [`${gigabytes(rate * count)} each way`]),
  ].join(', ');
}

export interface LinkTable {
  names: string[];
  /** One row a GPU: how it reaches each of the others; empty on the diagonal. */
  rows: string[][];
}

/** How every GPU reaches every other; undefined where there are not two. */
export function linkTable(gpus: Record<string, unknown>[]): LinkTable | undefined {
  if (gpus.length < 2) return undefined;
  const indices = gpus.map((gpu, i) => numberOf(gpu, 'index') ?? i);
  return {
    names: indices.map((index) => `GPU ${String(index)}`),
    rows: gpus.map((gpu, i) => indices.map((other) => (other === indices[i] ? '' : pathText(gpu, other)))),
  };
}

function pathText(gpu: Record<string, unknown>, other: number): string {
  const peers = Array.isArray(gpu.peers) ? (gpu.peers as Record<string, unknown>[]) : [];
  const peer = peers.find(({ index }) => index === other);
  if (peer === undefined) return na;
  const links = numberOf(peer, 'nvlinks') ?? 0;
  if (links > 0) return `NVLink × ${String(links)}`;
  return typeof peer.path === 'string' ? `PCIe over ${peer.path}` : na;
}
