/** Where each rank of a run computes: `cuda:0,1` are two GPUs, `cpu:0,1` two processes that share the CPU. */
export function rankDevices(device: string): string[] {
  const [kind = '', numbers] = device.split(':');
  if (numbers?.includes(',') !== true) return [device];
  return numbers.split(',').map((number) => (kind === 'cpu' ? kind : `${kind}:${number}`));
}

export function isOnCpu(device: string): boolean {
  return rankDevices(device)[0] === 'cpu';
}
