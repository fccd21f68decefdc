// How long the packaged app takes from being spawned to a view that can be used, phase by phase, against an empty
// Electron window started in turn with it; and what main and renderer hold in memory when idle.
//   node scripts/bench/start.mjs [--runs 10] [--development] [--first]
// Linux; the packaged folder (npm run package), or with --development what is built in out/. With no display it runs
// under Xvfb. On a machine that does other things too, --first (root) puts both before these, nearly as on a
// quiet one; without it only the ratio to the empty window and the processor seconds mean anything.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { electronProgram } from '../setup/electron.mjs';
import { root } from '../setup/paths.mjs';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '10' },
    development: { type: 'boolean', default: false },
    first: { type: 'boolean', default: false },
  },
});
if (!process.env.DISPLAY) {
  const again = [process.execPath, fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  process.exit(spawnSync('xvfb-run', ['-a', ...again], { stdio: 'inherit' }).status ?? 1);
}
const isRoot = process.getuid() === 0;
const numRuns = Number(values.runs);
const work = mkdtempSync(join(tmpdir(), 'tessera-start-'));
const limitMs = 60_000;

/** The least that an Electron app does: one window, one line of text; usable when that is painted. */
function emptyApp() {
  writeFileSync(join(work, 'package.json'), '{"name":"empty","version":"1.0.0","main":"main.cjs"}');
  const page = `<script>requestAnimationFrame(() => setTimeout(() => { document.title = 'usable' }))</script>empty`;
  writeFileSync(
    join(work, 'main.cjs'),
    `const { app, BrowserWindow } = require('electron');
    const mark = (name) => process.stderr.write('[start] ' + name + ' ' + Date.now() + '\\n');
    mark('main loaded');
    app.setPath('userData', ${JSON.stringify(join(work, 'empty-data'))});
    void app.whenReady().then(() => {
      mark('electron ready');
      const window = new BrowserWindow({ width: 1440, height: 900, webPreferences: { sandbox: true } });
      window.on('page-title-updated', (_event, title) => {
        if (title === 'usable') mark('usable, told');
      });
      void window.loadURL('data:text/html,' + encodeURIComponent(${JSON.stringify(page)}));
    });`,
  );
  return { program: electronProgram(), args: [work], last: 'usable, told' };
}

/** @returns {Promise<{marks: Record<string, number>, cpuSeconds: number, memory?: object}>} marks in ms since the spawn */
function start({ program, args, last }, wantsMemory) {
  const flags = isRoot ? ['--no-sandbox'] : [];
  return new Promise((done, fail) => {
    const marks = {};
    let text = '';
    let cpuSeconds;
    const spawnedAtMs = performance.timeOrigin + performance.now();
    const child = spawn(program, [...args, ...flags], {
      env: { ...process.env, TESSERA_START_MARKS: '1', TESSERA_NO_DIALOGS: '1' },
      stdio: ['ignore', 'ignore', 'pipe'],
      // A session of its own is a scheduling group of its own.
      detached: values.first,
    });
    const hurry = values.first ? setInterval(() => treeOf(child.pid).forEach(putFirst), 15) : undefined;
    if (values.first) putFirst(child.pid);
    const limit = setTimeout(() => {
      child.kill('SIGKILL');
      fail(new Error(`${program} reached only: ${Object.keys(marks).join(', ')}\n${text}`));
    }, limitMs);
    child.stderr.on('data', async (chunk) => {
      text += chunk;
      for (const [, name, at] of text.matchAll(/^\[start\] (.+) ([\d.]+)\n/gm))
        marks[name] ??= Number(at) - spawnedAtMs;
      if ('usable, told' in marks) cpuSeconds ??= cpuOf(treeOf(child.pid));
      if (!(last in marks) || !('usable, told' in marks) || child.isEnding) return;
      child.isEnding = true;
      clearInterval(hurry);
      clearTimeout(limit);
      let memory;
      if (wantsMemory) {
        await new Promise((later) => setTimeout(later, 15_000));
        memory = memoryOf(treeOf(child.pid));
      }
      child.once('exit', () => done({ marks, cpuSeconds, memory }));
      child.kill('SIGTERM');
    });
  });
}

/** Gives the scheduling group of a session (the core makes one of its own) the greatest weight. */
function putFirst(pid) {
  try {
    if (!read(`/proc/${pid}/autogroup`).endsWith('nice -20\n'))
      writeFileSync(`/proc/${pid}/autogroup`, '-20');
  } catch {
    // Gone meanwhile.
  }
}

/** A process and all that came of it, but for what left for a group of its own (the core lives by itself). */
function treeOf(pid) {
  const parents = new Map(
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map((name) => [Number(name), Number(/\) \S (\d+)/.exec(read(`/proc/${name}/stat`))?.[1] ?? 0)]),
  );
  const tree = [pid];
  for (const each of tree) for (const [child, parent] of parents) if (parent === each) tree.push(child);
  return tree;
}

/** Processor seconds so far, by kind of process. */
function cpuOf(pids) {
  const seconds = {};
  for (const pid of pids) {
    const fields = read(`/proc/${pid}/stat`).replace(/.*\) /s, '').split(' ');
    const kind = kindOf(pid, pids[0]);
    seconds[kind] = (seconds[kind] ?? 0) + (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / 100;
  }
  return seconds;
}

function kindOf(pid, main) {
  if (pid === main) return 'main';
  const command = read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ');
  const type = /--type=([\w-]+)/.exec(command)?.[1];
  return type ?? (command.includes('core/main.ts') ? 'core' : 'other');
}

/** Proportional set size, so that pages shared between the processes count once. MiB by kind of process. */
function memoryOf(pids) {
  const sizes = {};
  for (const pid of pids) {
    const kind = kindOf(pid, pids[0]);
    const kilobytes = Number(/^Pss:\s+(\d+)/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0);
    sizes[kind] = (sizes[kind] ?? 0) + kilobytes / 1024;
  }
  return sizes;
}

function read(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

const median = (numbers) => {
  const sorted = numbers.filter((one) => one !== undefined).sort((a, b) => a - b);
  return (sorted[Math.floor((sorted.length - 1) / 2)] + sorted[Math.ceil((sorted.length - 1) / 2)]) / 2;
};
const pause = () => new Promise((later) => setTimeout(later, 2500));

const empty = emptyApp();
const home = join(work, 'home');
const tessera = values.development
  ? { program: electronProgram(), args: [root, '--home', home], last: 'core ready' }
  : { program: join(root, 'dist/linux-unpacked/tessera'), args: ['--home', home], last: 'core ready' };
const results = { empty: [], tessera: [] };
process.stdout.write(
  `${availableParallelism()} × ${cpus()[0].model.trim()}, load ${loadavg()[0].toFixed(1)}, ${numRuns} runs of each in turn\n`,
);
const first = await start(tessera, false);
await pause();
for (let i = 0; i < numRuns; i += 1) {
  results.empty.push(await start(empty, false));
  results.tessera.push(await start(tessera, i === numRuns - 1));
  // The core stays a moment for whoever comes next; each start here is one without it.
  await pause();
}
const phases = [...new Set(results.tessera.flatMap(({ marks }) => Object.keys(marks)))]
  .map((name) => ({ name, ms: median(results.tessera.map(({ marks }) => marks[name])) }))
  .sort((a, b) => a.ms - b.ms);
let before = 0;
process.stdout.write('\nTessera, median ms after the spawn   (since the phase before)\n');
for (const { name, ms } of phases) {
  process.stdout.write(`  ${name.padEnd(24)} ${ms.toFixed(0).padStart(6)}  +${(ms - before).toFixed(0)}\n`);
  before = ms;
}
const usable = (runs) => runs.map(({ marks }) => marks['page usable'] ?? marks['usable, told']);
const spread = (numbers) => `${Math.min(...numbers).toFixed(0)} to ${Math.max(...numbers).toFixed(0)}`;
const total = (seconds) => Object.values(seconds).reduce((sum, one) => sum + one, 0);
const cpuText = (runs) => {
  const kinds = [...new Set(runs.flatMap(({ cpuSeconds }) => Object.keys(cpuSeconds)))];
  const each = kinds.map(
    (kind) => `${kind} ${median(runs.map(({ cpuSeconds }) => cpuSeconds[kind] ?? 0)).toFixed(2)}`,
  );
  return `${median(runs.map(({ cpuSeconds }) => total(cpuSeconds))).toFixed(2)} (${each.join(', ')})`;
};
const [mine, theirs] = [usable(results.tessera), usable(results.empty)];
process.stdout.write(`
usable after               ${median(mine).toFixed(0)} ms (${spread(mine)})
empty Electron window      ${median(theirs).toFixed(0)} ms (${spread(theirs)}; its main script at ${median(results.empty.map(({ marks }) => marks['main loaded'])).toFixed(0)}, ready at ${median(results.empty.map(({ marks }) => marks['electron ready'])).toFixed(0)})
ratio                      ${(median(mine) / median(theirs)).toFixed(2)}
processor seconds by then  ${cpuText(results.tessera)}
  of the empty window      ${cpuText(results.empty)}
very first start, new home ${usable([first])[0].toFixed(0)} ms
load at the end            ${loadavg()[0].toFixed(1)}
`);
const { memory } = results.tessera.at(-1);
process.stdout.write(
  `idle memory, MiB           ${Object.entries(memory)
    .map(([kind, size]) => `${kind} ${size.toFixed(0)}`)
    .join(', ')}; main + renderer ${(memory.main + memory.renderer).toFixed(0)}\n`,
);
if (!process.env.KEEP) rmSync(work, { recursive: true, force: true, maxRetries: 5 });
