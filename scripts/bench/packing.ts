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

const budget = 8192;
const draws: Record<string, (random: Random, i: number) => number> = {
  uniform: (random) => 1 + random.below(budget),
  'log-normal': (random) => Math.min(4096, Math.max(48, Math.round(Math.exp(6.7 + 0.85 * random.normal())))),
  bimodal: (random) => (random.below(2) === 0 ? 40 + random.below(80) : 3000 + random.below(2000)),
  constant: () => 4097,
  'all 1': () => 1,
  'one of each': (_random, i) => 1 + (i % budget),
};
const bounds = { seconds: 2, megabytes: 500 };

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '200000' },
    one: { type: 'string' },
  },
});

if (values.one === undefined) compareAll();
else console.log(JSON.stringify(measureOne(values.one)));

function measureOne(name: string) {
  const [distribution = '', strategy = ''] = name.split('/');
  const random = new Random(5);
  const lengths = Int32Array.from(
    { length: Number(values.count) },
    (_, i) => draws[distribution]?.(random, i) ?? 1,
  );
  const before = process.resourceUsage().maxRSS;
  const startedAtMs = performance.now();
  const { bins, tokens } = planPacking({ lengths, budget, strategy: strategy as Strategy });
  const seconds = (performance.now() - startedAtMs) / 1000;
  const megabytes = (process.resourceUsage().maxRSS - before) / 1024;
  return { seconds, megabytes, bins, least: Math.ceil(tokens / budget) };
}

function compareAll(): void {
  console.log('| lengths | strategy | bins | least possible | seconds | memory |');
  console.log('|---|---|---|---|---|---|');
  let breaches = 0;
  for (const distribution of Object.keys(draws)) {
    for (const strategy of Object.keys(STRATEGIES)) {
      const args = [import.meta.filename, '--count', values.count, '--one', `${distribution}/${strategy}`];
      const out = execFileSync(process.execPath, args, { encoding: 'utf8' });
      const { seconds, megabytes, bins, least } = JSON.parse(out) as ReturnType<typeof measureOne>;
      breaches += Number(seconds > bounds.seconds || megabytes > bounds.megabytes);
      const cells = [distribution, strategy, bins.toLocaleString('en'), least.toLocaleString('en')];
      console.log(`| ${cells.join(' | ')} | ${seconds.toFixed(2)} s | ${megabytes.toFixed(0)} MB |`);
    }
  }
  if (breaches > 0) process.exitCode = 1;
}
