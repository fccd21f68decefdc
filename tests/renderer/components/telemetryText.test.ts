import { expect, it } from 'vitest';
import { gpuRows } from '../../../renderer/components/telemetryText.ts';

it('what a GPU does not say is n/a, never 0, and a 0 that it says stays one', () => {
  const silent = gpuRows({ index: 0 });
  expect(new Set(silent.map(({ value }) => value))).toEqual(new Set(['n/a']));
  expect(silent.map(({ name }) => name)).toEqual([
    ...['Utilisation', 'Memory', 'Power', 'Energy', 'Temperature', 'SM clock', 'Memory clock'],
    ...['Throttled by', 'PCIe sent', 'PCIe received', 'ECC errors'],
  ]);
  expect(silent.some(({ isWarning }) => isWarning)).toBe(false);

  const row = (name: string, gpu: Parameters<typeof gpuRows>[0]) =>
    gpuRows(gpu).find((each) => each.name === name);
  expect(row('Utilisation', { index: 0, utilization: 0 })?.value).toBe('0 %');
  expect(row('ECC errors', { index: 0, eccCorrected: 0, eccUncorrected: 0 })?.value).toBe(
    '0 corrected, 0 not',
  );
  expect(row('ECC errors', { index: 0, eccUncorrected: 2 })).toMatchObject({
    value: 'n/a corrected, 2 not',
    isWarning: true,
  });
});
