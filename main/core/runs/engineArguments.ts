import { runFiles } from './runFolder.ts';

/** Everything that an engine reads for a run, and where it writes. */
export interface RunInputs {
  /** A run's folder, see `runFiles`. */
  folder: string;
  model: string;
  /** Folders of the token caches. */
  cache: string;
  /** Absent: nothing is held out. */
  evalCache?: string | undefined;
  /** The recipe has prompts to answer after each evaluation. */
  hasSamples?: boolean;
  /** A checkpoint to go on from. */
  resume?: string | undefined;
}

/** The command line that trains, or with `--forecast` only says what training would need. */
export function engineArguments({
  folder,
  model,
  cache,
  evalCache,
  hasSamples,
  resume,
}: RunInputs): string[] {
  const files = runFiles(folder);
  return [
    'train',
    ...['--recipe', files.recipe],
    ...['--cache', cache],
    ...['--plan', files.plan],
    ...['--model', model],
    ...['--out', files.out],
    ...(evalCache === undefined ? [] : ['--eval-cache', evalCache, '--eval-plan', files.evalPlan]),
    ...(hasSamples === true ? ['--samples', files.samples] : []),
    ...(resume === undefined ? [] : ['--resume', resume]),
  ];
}
