import { ladderQueries } from '../../db/queries/ladders.ts';
import type { Handlers } from '../contract/channel.ts';
import type { CoreContract } from '../contract/index.ts';
import { benchHandlers, LadderBench } from './bench/ladder.ts';
import type { CoreContext } from './context.ts';
import { Datasets } from './datasets/datasets.ts';
import { datasetHandlers } from './datasets/handlers.ts';
import { packingHandlers } from './packing/handlers.ts';
import { runHandlers } from './runs/handlers.ts';
import { Runs } from './runs/runs.ts';
import { settingsHandlers } from './settings/handlers.ts';
import { systemHandlers } from './system/handlers.ts';
import { telemetryHandlers } from './telemetry/handlers.ts';
import { TelemetryService } from './telemetry/telemetry.ts';

/** Every capability's handlers; a missing or extra channel is a type error here. */
export function createHandlers(context: CoreContext): Handlers<CoreContract> {
  const datasets = new Datasets(context);
  const runs = new Runs(context, datasets);
  const telemetry = new TelemetryService(context, () => runs.supervisor.trainingRun);
  telemetry.start();
  return {
    ...benchHandlers(new LadderBench(context, datasets, runs, ladderQueries(context.db))),
    ...datasetHandlers(datasets),
    ...packingHandlers(datasets, (args, call) => runs.costOfDataset(args, call)),
    ...runHandlers(runs),
    ...settingsHandlers(context, datasets),
    ...systemHandlers(context),
    ...telemetryHandlers(telemetry, runs),
  };
}
