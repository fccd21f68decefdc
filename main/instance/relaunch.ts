import { app } from 'electron';
import type { AppContext } from '../appContext.ts';

/** Ends this program and starts it anew with these arguments. Runs go on: they belong to the core. */
export function relaunch(context: AppContext, args: string[]): void {
  context.isQuitting = true;
  app.relaunch({ args });
  app.quit();
}

/** Arguments of a start in another home, whichever one this start was told. */
export function withHome(args: string[], home: string): string[] {
  const others = args.filter(
    (argument, i) => !argument.startsWith('--home=') && argument !== '--home' && args[i - 1] !== '--home',
  );
  return [...others, `--home=${home}`];
}
