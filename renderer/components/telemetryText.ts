import { throttleReasons, type GpuTelemetry } from '../../main/contract/telemetry.ts';
import { bytes, decimal, integer } from '../format.ts';

export const notAvailable = 'n/a';
const text = (value: number | undefined, write: (value: number) => string) =>
  value === undefined ? notAvailable : write(value);

/** Every field of a GPU as name and value; what it does not say is `n/a`, never 0. */
export function gpuRows(gpu: GpuTelemetry): { name: string; value: string; isWarning?: boolean }[] {
  const rate = (value: number) => `${bytes(value)}/s`;
  const reasons = gpu.throttleReasons === undefined ? undefined : throttleReasons(gpu.throttleReasons);
  const { eccUncorrected, eccCorrected } = gpu;
  return [
    { name: 'Utilisation', value: text(gpu.utilization, (value) => `${integer(value)} %`) },
    {
      name: 'Memory',
      value: text(
        gpu.memoryBytes,
        (value) => `${bytes(value)} of ${text(gpu.memoryTotalBytes, (total) => bytes(total))}`,
      ),
    },
    {
      name: 'Power',
      value: text(
        gpu.powerW,
        (value) =>
          `${integer(value)} W${gpu.powerLimitW === undefined ? '' : ` of ${integer(gpu.powerLimitW)} W`}`,
      ),
    },
    { name: 'Energy', value: text(gpu.energyJ, (value) => `${decimal(value / 3.6e6, 2)} kWh since start`) },
    { name: 'Temperature', value: text(gpu.temperatureC, (value) => `${integer(value)} °C`) },
    { name: 'SM clock', value: text(gpu.smClockMHz, (value) => `${integer(value)} MHz`) },
    { name: 'Memory clock', value: text(gpu.memoryClockMHz, (value) => `${integer(value)} MHz`) },
    {
      name: 'Throttled by',
      value: reasons === undefined ? notAvailable : reasons.join(', ') || 'nothing',
      isWarning: (reasons?.length ?? 0) > 0,
    },
    { name: 'PCIe sent', value: text(gpu.pcieSentBytesPerSecond, rate) },
    { name: 'PCIe received', value: text(gpu.pcieReceivedBytesPerSecond, rate) },
    {
      name: 'ECC errors',
      value:
        eccCorrected === undefined && eccUncorrected === undefined
          ? notAvailable
          : `${text(eccCorrected, integer)} corrected, ${text(eccUncorrected, integer)} not`,
      isWarning: (eccUncorrected ?? 0) > 0,
    },
  ];
}
