import { benchChannels } from './bench.ts';
import type { Client } from './client.ts';
import { datasetChannels } from './datasets.ts';
import { packingChannels } from './packing.ts';
import { runChannels } from './runs.ts';
import { settingsChannels } from './settings.ts';
import { systemChannels } from './system.ts';
import { telemetryChannels } from './telemetry.ts';

/** Everything that the core answers. A new capability adds its file here. */
export const contract = {
  ...benchChannels,
  ...datasetChannels,
  ...packingChannels,
  ...runChannels,
  ...settingsChannels,
  ...systemChannels,
  ...telemetryChannels,
};

export type CoreContract = typeof contract;
export type CoreClient = Client<CoreContract>;
