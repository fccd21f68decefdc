/**
 * Packs 200,000 lengths of several distributions by every strategy, each in a process of its own, and prints as Markdown
 * what it took: seconds of packing, and the memory that the process held at its peak beyond what it held before. The
 * bounds are those of the design: 2 s and 500 MB; a breach ends with exit code 1. `packing.ts [--count 200000]`
 */
import { execFileSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { planPacking } from '../../main/core/packing/plan.ts';
import { STRATEGIES, type Strategy } from '../../main/core/packing/strategies.ts';
import { Random } from '../../main/core/random.ts';

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '200000' },
    one: { type: 'string' },
  },
});
const count = Number(values.count);
const budget = 8192;
const draws: Record<string, (random: Random, i: number) => number> = {
  uniform: (random) => 1 + random.below(budget),
  'log-normal': (random) => Math.min(4096, Math.max(48, Math.round(Math.exp(6.7 + 0.85 * random.normal())))),
  bimodal: (random) => (random.below(2) === 0 ? 40 + random.below(80) : 3000 + random.below(2000)),
  constant: () => 4097,
  'all 1': () => 1,
  'one of each': (_random, i) => 1 + (i % budget),
  zipf: (random) => Math.min(budget, Math.floor((16 / (random.below(1_000_000) + 1)) * 1_000_000)),
  'a third and one more': () => Math.floor(budget / 3) + 1,
  'two that miss a bin by one': (_random, i) => (i % 2 === 0 ? 3000 : budget + 1 - 3000),
  ascending: (_random, i) => 1 + Math.floor((i * budget) / count),
  descending: (_random, i) => budget - Math.floor((i * budget) / count),
};
const bounds = { seconds: 2, megabytes: 500 };

if (values.one === undefined) compareAll();
else console.log(JSON.stringify(measureOne(values.one)));

function measureOne(name: string) {
  const [distribution = '', strategy = ''] = name.split('/');
  const random = new Random(5);
  const lengths = Int32Array.from({ length: count }, (_, i) => draws[distribution]?.(random, i) ?? 1);
  const { maxRSS: before, ...started } = process.resourceUsage();
  const startedAtMs = performance.now();
  const { bins, tokens } = planPacking({ lengths, budget, strategy: strategy as Strategy });
  const seconds = (performance.now() - startedAtMs) / 1000;
  // What the processor spent, collections on other threads included: where others wait for it too, what counts.
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  const cpuSeconds = (userCPUTime + systemCPUTime - started.userCPUTime - started.systemCPUTime) / 1e6;
  const megabytes = (process.resourceUsage().maxRSS - before) / 1024;
  return { seconds, cpuSeconds, megabytes, bins, least: Math.ceil(tokens / budget) };
}

function compareAll(): void {
  console.log('| lengths | strategy | bins | least possible | seconds | of the processor | memory |');
  console.log('|---|---|---|---|---|---|---|');
  let breaches = 0;
  for (const distribution of Object.keys(draws)) {
    for (const strategy of Object.keys(STRATEGIES)) {
      const args = [import.meta.filename, '--count', String(count), '--one', `${distribution}/${strategy}`];
      const out = execFileSync(process.execPath, args, { encoding: 'utf8' });
      const { seconds, cpuSeconds, megabytes, bins, least } = JSON.parse(out) as ReturnType<
        typeof measureOne
      >;
      breaches += Number(seconds > bounds.seconds || megabytes > bounds.megabytes);
      const cells = [distribution, strategy, bins.toLocaleString('en'), least.toLocaleString('en')];
      const times = `${seconds.toFixed(2)} s | ${cpuSeconds.toFixed(2)} s`;
      console.log(`| ${cells.join(' | ')} | ${times} | ${megabytes.toFixed(0)} MB |`);
    }
  }
  if (breaches > 0) process.exitCode = 1;
}
