import { join } from 'node:path';
import type { Handlers } from '../../contract/channel.ts';
import type { settingsChannels } from '../../contract/settings.ts';
import type { CoreContext } from '../context.ts';
import type { Datasets } from '../datasets/datasets.ts';
import { openSettings } from './settings.ts';

export function settingsHandlers(
  { home, log }: CoreContext,
  datasets: Datasets,
): Handlers<typeof settingsChannels> {
  const store = openSettings(join(home.root, 'settings.json'), log);
  datasets.setDiskBudget(store.get().diskBudgetGib);
  const show = () => ({ settings: store.get(), file: store.file });
  return {
    'settings:get': show,
    'settings:set': ({ diskBudgetGib, notifications, defaults }) => {
      store.set({
        ...(diskBudgetGib !== undefined && { diskBudgetGib }),
        ...(notifications && { notifications }),
        ...(defaults && { defaults }),
      });
      datasets.setDiskBudget(store.get().diskBudgetGib);
      return show();
    },
  };
}
