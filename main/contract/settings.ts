import { z } from 'zod';
import { call } from './channel.ts';
import { deviceName } from './recipe.ts';

/** What a home's owner decides once. Kept in `settings.json` of the home; every default is here. */
export const settingsSchema = z.strictObject({
  /** Token caches beyond it make room for new ones, the least recently used first. */
  diskBudgetGib: z.number().positive().max(1_000_000).default(100),
  /** When the window is not looked at. */
  notifications: z
    .strictObject({ ended: z.boolean().default(true), failed: z.boolean().default(true) })
    .prefault({}),
  /** What a new recipe in the window begins with; recipes that are there already are not touched. */
  defaults: z
    .strictObject({
      device: deviceName.optional(),
      budget: z.int().min(2).optional(),
      lr: z.number().nonnegative().optional(),
      evalShare: z.number().min(0).lt(1).optional(),
    })
    .prefault({}),
});
export type CoreSettings = z.infer<typeof settingsSchema>;

const shown = z.object({ settings: settingsSchema, file: z.string() });

export const settingsChannels = {
  'settings:get': call({ args: z.object({}), result: shown }),
  /** Replaces the named groups. */
  'settings:set': call({
    args: z.object({
      diskBudgetGib: settingsSchema.shape.diskBudgetGib.unwrap().optional(),
      notifications: z.strictObject({ ended: z.boolean(), failed: z.boolean() }).optional(),
      defaults: z
        .strictObject({
          device: z.string().optional(),
          budget: z.int().min(2).optional(),
          lr: z.number().nonnegative().optional(),
          evalShare: z.number().min(0).lt(1).optional(),
        })
        .optional(),
    }),
    result: shown,
  }),
};
