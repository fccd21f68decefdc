import { loadPreset, loadRecipe } from '../../core/runs/recipe.ts';
import { defineCommand, usage } from '../command.ts';
import { followRun, notFailed } from '../followRun.ts';
import { preflightText } from '../preflightText.ts';
import { runText } from '../runText.ts';
import type { Preflight, RunSummary } from '../../contract/runs.ts';

export const command = defineCommand({
  summary: 'Train as a recipe says',
  usage: 'RECIPE | - | --preset NAME [--set key=value…] [--dry-run] [--accept-slow] [--detach]',
  options: {
    preset: {
      type: 'string',
      value: 'NAME',
      help: 'a recipe that comes with the program: the command presets lists them',
    },
    set: {
      type: 'string',
      multiple: true,
      value: 'KEY=VALUE',
      help: 'overrides the recipe: --set optimizer.lr=1e-4',
    },
    'dry-run': { type: 'boolean', help: 'only the preflight: data, exact steps, memory, kernels, disk' },
    'accept-slow': { type: 'boolean', help: 'train even where a kernel is slow' },
    detach: { type: 'boolean', help: 'return once it is queued; the core goes on' },
  },
  numPositionals: [0, 1],
  run: async (invocation): Promise<Preflight | { run: RunSummary }> => {
    const { positionals, options, progress } = invocation;
    const settings = [...(options.set ?? []), ...(options['accept-slow'] ? ['acceptSlow=true'] : [])];
    const [path] = positionals;
    if ((path === undefined) === (options.preset === undefined))
      throw usage('give a recipe file, or --preset NAME');
    const recipe =
      path === undefined ? loadPreset(options.preset ?? '', settings) : loadRecipe(path, settings);
    const core = await invocation.core();
    const preparing = new AbortController();
    const signal = options.detach || options['dry-run'] ? undefined : invocation.interrupted();
    signal?.addEventListener(
      'abort',
      () => {
        preparing.abort();
      },
      { once: true },
    );
    const call = { onProgress: progress.update, signal: preparing.signal };
    if (options['dry-run']) {
      const preflight = await core.call('runs:preflight', { recipe }, call);
      if (!preflight.ok) invocation.setExitCode(1);
      return preflight;
    }
    const { run } = await core.call('runs:create', { recipe }, call);
    if (options.detach) return { run };
    return { run: await notFailed(core, await followRun(core, run.id, invocation)) };
  },
  text: (result) => ('run' in result ? runText(result) : preflightText(result)),
});
