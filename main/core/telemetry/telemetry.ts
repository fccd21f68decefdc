import { statfsSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import type { Telemetry } from '../../contract/telemetry.ts';
import type { CoreContext } from '../context.ts';
import { EngineProcess } from '../engine/engineProcess.ts';
import { Emitter } from '../emitter.ts';
import { availableMemory } from '../system/doctor.ts';
import { TelemetryRecorder } from './recorder.ts';
import { telemetryQueries, type TelemetryQueries } from '../../../db/queries/telemetry.ts';

const hostIntervalMs = 1000;
const stopLimitMs = 3000;

/** How long a monitor that died stays dead. */
const restartMs = 10_000;

/** Runs the engine's monitor as long as the core, hands out what it sees, and stores it with the run that trains. */
export class TelemetryService {
  readonly events = new Emitter<Telemetry>();
  readonly queries: TelemetryQueries;
  private readonly context: CoreContext;
  private readonly trainingRun: () => string | undefined;
  private readonly recorder: TelemetryRecorder;
  private readonly readCpu = cpuMeter();
  private monitor: EngineProcess | undefined;
  private timer: NodeJS.Timeout | undefined;
  private restart: NodeJS.Timeout | undefined;
  private isClosing = false;
  private latest: Pick<Telemetry, 'gpus' | 'reason'> = { gpus: [] };
  private host: Telemetry['host'] = {
    ...{ cpuUtilization: 0, memoryBytes: 0, memoryTotalBytes: totalmem(), diskFreeBytes: 0 },
  };

  constructor(context: CoreContext, trainingRun: () => string | undefined) {
    this.context = context;
    this.trainingRun = trainingRun;
    this.queries = telemetryQueries(context.db);
    this.recorder = new TelemetryRecorder(this.queries, context.log);
    context.onClose(async () => {
      this.isClosing = true;
      clearInterval(this.timer);
      clearTimeout(this.restart);
      this.recorder.close();
      await this.monitor?.close(stopLimitMs);
    });
  }

  /** A monitor that cannot run is no fault: the events say why, with no GPUs in them. */
  start(): void {
    this.timer = setInterval(() => {
      this.readHost();
      // With GPUs the monitor sets the pace.
      if (this.latest.gpus.length === 0) this.publish(Date.now(), true);
      else this.recorder.add(this.trainingRun(), { atMs: Date.now(), gpus: [], host: this.host }, true);
    }, hostIntervalMs);
    this.readHost();
    this.startMonitor();
  }

  /** What was seen last. */
  get now(): Telemetry {
    return { atMs: Date.now(), ...this.latest, host: this.host };
  }

  private startMonitor(): void {
    try {
      const monitor = new EngineProcess({
        name: 'monitor',
        args: ['monitor', '--json'],
        log: this.context.log,
        onEvent: (event) => {
          if (event.event !== 'telemetry') return;
          const { gpus = [], reason } = event;
          this.latest = { gpus, ...(reason !== undefined && { reason }) };
          this.publish(event.atMs, false);
        },
      });
      this.monitor = monitor;
      void monitor.exited.then(({ error }) => {
        this.latest = { gpus: [], ...(error !== undefined && { reason: error.message }) };
        if (this.isClosing) return;
        this.restart = setTimeout(() => {
          this.startMonitor();
        }, restartMs);
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
      diskFreeBytes: diskFree(this.context.home.root),
    };
  }

  private publish(atMs: number, isHostNew: boolean): void {
    const event: Telemetry = { atMs, ...this.latest, host: this.host };
    this.events.emit(event);
    this.recorder.add(this.trainingRun(), event, isHostNew);
  }
}

function diskFree(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return 0;
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
