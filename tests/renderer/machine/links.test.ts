import { describe, expect, it } from 'vitest';
import { dataSheet } from '../../../renderer/views/machine/dataSheet.ts';
import { linkTable, nvlinkText, pcieText } from '../../../renderer/views/machine/links.ts';

describe('how GPUs are joined', () => {
  it('says generation, width and rate, and where it could be more', () => {
    expect(pcieText({ pcieGeneration: 5, pcieWidth: 16, pcieMaxGeneration: 5, pcieMaxWidth: 16 })).toBe(
      '5.0 × 16, 63 GB/s each way',
    );
    expect(pcieText({ pcieGeneration: 1, pcieWidth: 8, pcieMaxGeneration: 4, pcieMaxWidth: 16 })).toBe(
      '1.0 × 8, 2.0 GB/s each way (of 4.0 × 16; an idle link slows down)',
    );
    expect(pcieText({ pcieGeneration: 9, pcieWidth: 16 })).toBe('9.0 × 16');
  });

  it('says n/a where a GPU does not tell, and none where it has none', () => {
    expect(pcieText({ pcieWidth: 16 })).toBe('n/a');
    expect(nvlinkText({})).toBe('n/a');
    expect(nvlinkText({ nvlinks: 0 })).toBe('none');
    expect(nvlinkText({ nvlinks: 1 })).toBe('1 link');
    expect(nvlinkText({ nvlinks: 18, nvlinkVersion: 4, nvlinkBytesPerSecond: 26_562e6 })).toBe(
      '18 links of version 4, 478 GB/s each way',
    );
  });

  it('shows how each reaches the others', () => {
    expect(linkTable([{ index: 0 }])).toBeUndefined();
    const gpus = [
      {
        index: 0,
        peers: [
          { index: 1, path: 'system', nvlinks: 4 },
          { index: 2, path: 'host bridge', nvlinks: 0 },
        ],
      },
      { index: 1, peers: [{ index: 0, path: 'system', nvlinks: 4 }, { index: 2 }] },
      { index: 2 },
    ];
    expect(linkTable(gpus)).toEqual({
      names: ['GPU 0', 'GPU 1', 'GPU 2'],
      rows: [
        ['', 'NVLink × 4', 'PCIe over host bridge'],
        ['NVLink × 4', '', 'n/a'],
        ['n/a', 'n/a', ''],
      ],
    });
  });

  it('guesses no data sheet', () => {
    expect(dataSheet('NVIDIA H200')).toEqual({ flopsPerSecond: 989e12, bytesPerSecond: 4800e9 });
    expect(dataSheet('NVIDIA GeForce RTX 4090')?.bytesPerSecond).toBe(1008e9);
    for (const name of ['NVIDIA GeForce RTX 4090 D', 'Stand-in 0', undefined, 4])
      expect(dataSheet(name)).toBeUndefined();
  });
});
