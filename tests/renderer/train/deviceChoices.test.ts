import { expect, it } from 'vitest';
import { deviceChoices } from '../../../renderer/views/train/deviceChoices.ts';

const gpus = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ device: `cuda:${String(n)}`, name: 'H200' }));
const values = (count: number) => deviceChoices(gpus(count)).map(({ value }) => value);

it('offers each GPU, then the first two, four and all of them', () => {
  expect(values(1)).toEqual(['cuda:0']);
  expect(values(2)).toEqual(['cuda:0', 'cuda:1', 'cuda:0,1']);
  expect(values(6).slice(6)).toEqual(['cuda:0,1', 'cuda:0,1,2,3', 'cuda:0,1,2,3,4,5']);
  expect(deviceChoices(gpus(2)).at(-1)?.label).toBe('cuda:0,1, all 2 GPUs');
});

it('leaves out those that this engine cannot use', () => {
  expect(deviceChoices([{ index: 0 }, { device: 'cuda:1' }])).toEqual([{ value: 'cuda:1', label: 'cuda:1' }]);
});
