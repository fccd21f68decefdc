import { untilAborted, type Handlers } from '../../contract/channel.ts';
import type { telemetryChannels } from '../../contract/telemetry.ts';
import type { CoreContext } from '../context.ts';
import { TelemetryService } from './telemetry.ts';

export function telemetryHandlers(context: CoreContext): Handlers<typeof telemetryChannels> {
  const service = new TelemetryService(context);
  return {
    'telemetry:watch': async (_args, emit, signal) => {
      const stop = service.events.listen(emit);
      service.start();
      await untilAborted(signal);
      stop();
    },
  };
}
