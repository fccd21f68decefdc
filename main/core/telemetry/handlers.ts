import { untilAborted, type Handlers } from '../../contract/channel.ts';
import type { telemetryChannels } from '../../contract/telemetry.ts';
import type { Runs } from '../runs/runs.ts';
import { mergeTelemetry } from './readTelemetry.ts';
import type { TelemetryService } from './telemetry.ts';

export function telemetryHandlers(service: TelemetryService, runs: Runs): Handlers<typeof telemetryChannels> {
  return {
    'telemetry:watch': async (_args, emit, signal) => {
      emit(service.now);
      const stop = service.events.listen(emit);
      await untilAborted(signal);
      stop();
    },
    'telemetry:of-run': ({ id, maxPoints, source }) => {
      const { id: runId } = runs.find(id);
      return {
        series: mergeTelemetry(service.queries.read(runId, source), maxPoints),
        sources: service.queries.sources(runId),
      };
    },
  };
}
