import { TesseraError } from '../../contract/errors.ts';
import { defineCommand } from '../command.ts';

const keys = ['diskBudgetGib', 'notifications.ended', 'notifications.failed'] as const;

export const command = defineCommand({
  summary: 'Show the settings of the home, or change some',
  usage: '[KEY=VALUE…]',
  options: {},
  numPositionals: [0, Infinity],
  run: async ({ positionals, core }) => {
    const client = await core();
    const { settings } = await client.call('settings:get', {});
    if (positionals.length === 0) return client.call('settings:get', {});
    const notifications = { ...settings.notifications };
    let diskBudgetGib: number | undefined;
    for (const setting of positionals) {
      const [key = '', value = ''] = setting.split('=', 2);
      if (key === 'diskBudgetGib') diskBudgetGib = Number(value);
      else if (key === 'notifications.ended' || key === 'notifications.failed')
        notifications[key === 'notifications.ended' ? 'ended' : 'failed'] = value === 'true';
      else
        throw new TesseraError(
          'badSettings',
          `there is no setting '${key}'`,
          `There are: ${keys.join(', ')}.`,
        );
    }
    return client.call('settings:set', {
      notifications,
      ...(diskBudgetGib !== undefined && { diskBudgetGib }),
    });
  },
});
