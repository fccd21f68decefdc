import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { GpuTelemetry } from '../../../main/contract/telemetry.ts';
import { engineBinary } from '../../../main/core/engine/binary.ts';

interface Event {
  atMs: number;
  gpus: GpuTelemetry[];
  reason?: string;
}

let folder: string;
let script: string;
let monitor: ChildProcess | undefined;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tessera-nvml-'));
  script = join(folder, 'nvml.txt');
  execFileSync('cc', [
    ...['-shared', '-fPIC', '-o', join(folder, 'libnvidia-ml.so.1')],
    'tests/native/nvml_stand_in.c',
  ]);
  copyFileSync(join(folder, 'libnvidia-ml.so.1'), join(folder, 'libcuda.so.1'));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** A monitor that opens the stand-in through the engine's own search path. */
function watch(says: string) {
  writeFileSync(script, says);
  const child = spawn(engineBinary(), ['monitor', '--json'], {
    env: { ...process.env, ENGINE_LIB_PATH: folder, NVML_STAND_IN: script },
  });
  monitor = child;
  const events = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return async (holds: (event: Event) => boolean): Promise<Event> => {
    for (;;) {
      const { value, done } = await events.next();
      if (done === true) throw new Error('the monitor ended');
      const event = JSON.parse(value) as Event;
      if (holds(event)) return event;
    }
  };
}

/** What the engine says of the GPUs when it introduces itself. */
function hello(says: string, env: NodeJS.ProcessEnv = {}) {
  writeFileSync(script, says);
  const out = execFileSync(engineBinary(), ['hello', '--json'], {
    env: { ...process.env, ENGINE_LIB_PATH: folder, NVML_STAND_IN: script, ...env },
  });
  return (JSON.parse(out.toString()) as { gpus: Record<string, unknown>[] }).gpus;
}

describe('the names of GPUs', () => {
  const devices = (says: string, env: NodeJS.ProcessEnv) => hello(says, env).map(({ device }) => device);
  const chosen = { CUDA_VISIBLE_DEVICES: '2,0' };

  it('are those of CUDA, which may show some of them and in another order', () => {
    expect(devices('count 3\ncuda 2\ncuda0 2\ncuda1 0\n', chosen)).toEqual(['cuda:1', undefined, 'cuda:0']);
    expect(devices('count 2\ncuda 0\n', chosen)).toEqual([undefined, undefined]);
  });

  it('are NVML’s numbers where nothing says otherwise, or the driver cannot be asked', () => {
    expect(devices('count 2\n', chosen)).toEqual(['cuda:0', 'cuda:1']);
  });
});

describe('the links of GPUs', () => {
  it('are told: PCIe, NVLink to a GPU or through a switch, the nearest thing that two share', () => {
    const [first] = hello('count 3\nnvlinks 4\nlevel 30\n');
    expect(first).toEqual({
      ...{
        index: 0,
        device: 'cuda:0',
        name: 'Stand-in 0',
        pciBusId: '00000000:01:00.0',
        driver: '570.86.15',
        cudaDriver: '12.8',
      },
      ...{ computeCapability: '9.0', memoryBytes: 80 * 2 ** 30, powerLimitW: 700 },
      ...{ pcieGeneration: 4, pcieWidth: 8, pcieMaxGeneration: 5, pcieMaxWidth: 16 },
      ...{ nvlinks: 4, nvlinkVersion: 4, nvlinkBytesPerSecond: 26_562e6 },
      // The stand-in's links lead to the next GPU.
      peers: [
        { index: 1, nvlinks: 4, path: 'host bridge' },
        { index: 2, nvlinks: 0, path: 'host bridge' },
      ],
    });
    expect(hello('count 3\nnvlinks 4\nswitch 1\n')[0]?.peers).toEqual([
      { index: 1, nvlinks: 4, path: 'system' },
      { index: 2, nvlinks: 4, path: 'system' },
    ]);
  });

  it('are absent where a GPU does not tell, and a lost one stays in the list', () => {
    const says =
      'count 2\n0.nvlink 3\n0.pcieWidth 3\n0.capability 999\n0.ancestor 3\n1.handle 15\ndriver 999\n';
    const [first, second] = hello(says);
    for (const field of ['nvlinks', 'pcieWidth', 'computeCapability', 'driver', 'nvlinkBytesPerSecond'])
      expect(first).not.toHaveProperty(field);
    expect(first).toMatchObject({ pcieGeneration: 4, peers: [{ index: 1 }] });
    expect(second).toMatchObject({ index: 1, lost: true });
  });
});

describe('the monitor', { timeout: 30_000 }, () => {
  afterEach(async () => {
    const ended = new Promise((done) => monitor?.once('close', done));
    monitor?.stdin?.end();
    await ended;
  });

  it('reads every field of every GPU', async () => {
    const until = watch('count 2\nthrottleReasons 4\n');
    const { gpus } = await until(({ gpus: all }) => all.every((gpu) => gpu.eccCorrected !== undefined));
    expect(gpus).toHaveLength(2);
    expect(gpus[1]).toEqual({
      ...{ index: 1, device: 'cuda:1', name: 'Stand-in 1', pciBusId: '00000000:02:00.0', utilization: 97 },
      ...{ memoryBytes: 32 * 2 ** 30, memoryTotalBytes: 80 * 2 ** 30, powerW: 250.5, powerLimitW: 700 },
      ...{ energyJ: 1234.567, temperatureC: 64, smClockMHz: 1980, memoryClockMHz: 2619, throttleReasons: 4 },
      ...{ pcieSentBytesPerSecond: 1.5e6, pcieReceivedBytesPerSecond: 2.5e6 },
      ...{ eccCorrected: 2, eccUncorrected: 0 },
    });
  });

  it('leaves out what a GPU does not support or cannot say: absent, never 0', async () => {
    const until = watch(
      'count 2\n0.power 3\n0.memory 3\n0.utilization 999\n0.ecc 3\n0.pcie 3\n0.throttle 3\n',
    );
    const { gpus } = await until(({ gpus: all }) => all[1]?.eccCorrected !== undefined);
    const missing = ['powerW', 'memoryBytes', 'memoryTotalBytes', 'utilization', 'throttleReasons'];
    for (const field of [...missing, 'eccCorrected', 'pcieSentBytesPerSecond', 'lost'])
      expect(gpus[0]).not.toHaveProperty(field);
    expect(gpus[0]).toMatchObject({ temperatureC: 64, smClockMHz: 1980 });
    expect(gpus[1]).toMatchObject({ powerW: 250.5, utilization: 97 });
  });

  it('takes power and traffic from counters where the driver has them', async () => {
    const until = watch('count 1\npowerNow 301500\npcieSent 1000\npcieReceived 5000\n');
    await until(({ gpus }) => gpus[0]?.powerW === 301.5 && gpus[0].pcieSentBytesPerSecond === 0);
    writeFileSync(script, 'count 1\npowerNow 301500\npcieSent 9001000\npcieReceived 5000\n');
    const { gpus } = await until(({ gpus: all }) => Number(all[0]?.pcieSentBytesPerSecond) > 0);
    expect(gpus[0]?.pcieReceivedBytesPerSecond).toBe(0);
  });

  it('tells ten times a second, and of a GPU that vanishes and comes back', async () => {
    const until = watch('count 2\n');
    const first = await until(() => true);
    let count = 0;
    const tenth = await until(() => ++count === 10);
    expect(tenth.atMs - first.atMs).toBeGreaterThanOrEqual(800);
    writeFileSync(script, 'count 2\n1.handle 15\n');
    const gone = await until(({ gpus }) => gpus[1]?.lost === true);
    expect(gone.gpus[1]).toEqual({
      index: 1,
      device: 'cuda:1',
      name: 'Stand-in 1',
      pciBusId: '00000000:02:00.0',
      lost: true,
    });
    expect(gone.gpus[0]?.utilization).toBe(97);
    writeFileSync(script, 'count 2\n1.memory 15\n');
    await until(({ gpus }) => gpus[1]?.lost === true);
    writeFileSync(script, 'count 2\n');
    await until(({ gpus }) => gpus[1]?.utilization === 97);
  });

  it.each([
    ['init 9\n', 'could not be started (status 9)'],
    ['count 0\n', 'no GPU'],
  ])('says why there are none: %j', async (says, why) => {
    const event = await watch(says)(() => true);
    expect(event.gpus).toEqual([]);
    expect(event.reason).toContain(why);
  });
});
