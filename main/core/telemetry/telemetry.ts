import { cpus, totalmem } from 'node:os';
import type { Telemetry } from '../../contract/telemetry.ts';
import type { CoreContext } from '../context.ts';
import { EngineProcess } from '../engine/engineProcess.ts';
import { Emitter } from '../emitter.ts';
import { availableMemory } from '../system/doctor.ts';

const hostIntervalMs = 1000;
const stopLimitMs = 3000;

/** Runs the engine's monitor from the first reader to the core's end, and hands out what it sees. */
export class TelemetryService {
  readonly events = new Emitter<Telemetry>();
  private readonly context: CoreContext;
  private readonly readCpu = cpuMeter();
  private monitor: EngineProcess | undefined;
  private timer: NodeJS.Timeout | undefined;
  private latest: Pick<Telemetry, 'gpus' | 'reason'> = { gpus: [] };
  private host: Telemetry['host'] = { cpuUtilization: 0, memoryBytes: 0, memoryTotalBytes: totalmem() };

  constructor(context: CoreContext) {
    this.context = context;
    context.onClose(async () => {
      clearInterval(this.timer);
      await this.monitor?.close(stopLimitMs);
    });
  }

  /** Idempotent. A monitor that cannot run is no fault: the events say why, with no GPUs in them. */
  start(): void {
    if (this.timer !== undefined) return;
    this.timer = setInterval(() => {
      this.readHost();
      // With GPUs the monitor sets the pace.
      if (this.latest.gpus.length === 0) this.publish(Date.now());
    }, hostIntervalMs);
    this.readHost();
    try {
      this.monitor = new EngineProcess({
        name: 'monitor',
        args: ['monitor', '--json'],
        log: this.context.log,
        onEvent: (event) => {
          if (event.event !== 'telemetry') return;
          const { gpus = [], reason } = event;
          this.latest = { gpus, ...(reason !== undefined && { reason }) };
          this.publish(event.atMs);
        },
      });
      void this.monitor.exited.then(({ error }) => {
        this.latest = { gpus: [], ...(error !== undefined && { reason: error.message }) };
      });
    } catch (error) {
      this.latest = { gpus: [], reason: error instanceof Error ? error.message : String(error) };
    }
  }

  private readHost(): void {
    this.host = {
      cpuUtilization: this.readCpu(),
      memoryBytes: totalmem() - availableMemory(),
      memoryTotalBytes: totalmem(),
    };
  }

  private publish(atMs: number): void {
    this.events.emit({ atMs, ...this.latest, host: this.host });
  }
}

/** Each call: the share of all cores that was busy since the one before. */
function cpuMeter(): () => number {
  const read = () => {
    const times = cpus().map((core) => core.times);
    const idle = times.reduce((sum, time) => sum + time.idle, 0);
    const total = times.reduce(
      (sum, { user, nice, sys, idle: rest, irq }) => sum + user + nice + sys + rest + irq,
      0,
    );
    return { idle, total };
  };
  let last = read();
  return () => {
    const now = read();
    const total = now.total - last.total;
    const busy = total > 0 ? 1 - (now.idle - last.idle) / total : 0;
    last = now;
    return busy;
  };
}
