import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { counted } from '../../contract/counted.ts';
import type { Ladder } from '../../contract/bench.ts';
import { defineCommand, numberOption } from '../command.ts';
import { count } from '../progressBar.ts';
import { textTable } from '../runText.ts';

export const command = defineCommand({
  summary: 'Measure what the fast kernels gain here, and what packing gains on top',
  usage: '[--dataset ID] [--model DIR] [--budget N] [--examples N] [--rounds N] [--device D]',
  options: {
    dataset: { type: 'string', value: 'ID', help: 'a dataset or a path; default: the sample chats' },
    model: { type: 'string', value: 'DIR', help: 'a model folder; default: the bundled model' },
    budget: { type: 'string', value: 'N', help: 'tokens in a bin; default 1024' },
    examples: { type: 'string', value: 'N', help: 'how many examples; default 40' },
    rounds: {
      type: 'string',
      value: 'N',
      help: 'how often each is measured; default up to 3 within a minute',
    },
    device: { type: 'string', value: 'D', help: 'auto, cpu, cuda:0; default auto' },
  },
  numPositionals: [0, 0],
  run: async ({ options, core, progress, interrupted }) => {
    const whole = (name: 'budget' | 'examples' | 'rounds', min: number) => {
      const value = numberOption(name, options[name], { integer: true, min });
      return value === undefined ? {} : { [name]: value };
    };
    const { dataset } = options;
    const args = {
      ...(dataset !== undefined && { dataset: existsSync(dataset) ? resolve(dataset) : dataset }),
      ...(options.model !== undefined && { model: resolve(options.model) }),
      ...(options.device !== undefined && { device: options.device }),
      ...whole('budget', 2),
      ...whole('examples', 1),
      ...whole('rounds', 1),
    };
    const call = { onProgress: progress.update, signal: interrupted() };
    return (await core()).call('bench:ladder', args, call);
  },
  text: ({ ladder }) => ladderText(ladder),
});

function roundsText(rounds: number, spread: number): string {
  if (rounds === 1) return 'one round, so how far rounds differ is not known';
  return `${rounds} rounds in turns, which differ by up to ${(spread * 100).toFixed(0)} %`;
}

function ladderText(ladder: Ladder): string {
  const { device, deviceName = device, model, examples, budget, rounds, spread, seconds, rungs } = ladder;
  const table = textTable(
    ['', 'tokens/s', 'ms a step', 'steps', 'fill', 'padding', 'gain', 'in all'],
    rungs.map((rung) => [
      `${rung.kernels} kernels, ${rung.strategy === 'padded' ? 'padded' : 'packed'}`,
      count(rung.tokensPerSecond),
      rung.stepMilliseconds.toFixed(rung.stepMilliseconds < 10 ? 2 : 0),
      count(rung.steps),
      `${(rung.fill * 100).toFixed(1)} %`,
      `${((1 - rung.tokens / rung.positions) * 100).toFixed(1)} %`,
      `${rung.factor.toFixed(2)}×`,
      `${rung.factorInAll.toFixed(2)}×`,
    ]),
    [1, 2, 3, 4, 5, 6, 7],
  );
  const kernels = rungs.slice(0, 2).map((rung) => `${rung.kernels}: ${rung.deltaRule}, ${rung.builtOn}`);
  const tokens = count(rungs[0]?.tokens ?? 0);
  return [
    table,
    '',
    `${counted(examples, 'example')}, ${tokens} real tokens, budget ${count(budget)}; ${model} on ${deviceName}`,
    `${roundsText(rounds, spread)}; ${seconds.toFixed(0)} s in all`,
    ...kernels,
  ].join('\n');
}
