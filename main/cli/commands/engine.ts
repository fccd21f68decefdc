import { spawn } from 'node:child_process';
import { engineBinary } from '../../core/engine/binary.ts';
import { defineCommand } from '../command.ts';

export const command = defineCommand({
  summary: 'Forward to the native program: engine verify, bench, monitor, …',
  usage: 'SUBCOMMAND [arguments]',
  options: {},
  numPositionals: [0, Infinity],
  raw: true,
  run: async ({ positionals, setExitCode }) => {
    const child = spawn(engineBinary(), positionals.length === 0 ? ['--help'] : positionals, {
      stdio: 'inherit',
    });
    // The terminal sends Ctrl-C to both; the engine decides.
    const ignore = () => undefined;
    process.on('SIGINT', ignore);
    const forward = () => child.kill('SIGTERM');
    process.on('SIGTERM', forward);
    const code = await new Promise<number>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (status, signal) => {
        resolve(status ?? (signal === 'SIGINT' ? 130 : 1));
      });
    });
    process.off('SIGINT', ignore).off('SIGTERM', forward);
    setExitCode(code);
    return undefined;
  },
});
