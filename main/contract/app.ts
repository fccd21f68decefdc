import type { Client } from './client.ts';
import { hostChannels } from './host.ts';
import { contract } from './index.ts';

/** Everything that a window may ask for: the core's channels and its own process's. */
export const appContract = { ...contract, ...hostChannels };
export type AppClient = Client<typeof appContract>;
