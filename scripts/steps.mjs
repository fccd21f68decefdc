// Runs checks and test programs, each with a time limit, and says which command repeats a failure.
import { spawn } from 'node:child_process';
import { relative } from 'node:path';
import { node24, root } from './setup/paths.mjs';

/**
 * @typedef {{name: string, node?: string[], program?: string[], timeoutMs: number, env?: NodeJS.ProcessEnv,
 *   count?: (output: string) => {passed: number, failed: number} | undefined}} Step
 * @param {Step[]} steps `count` reads the numbers from a runner's output; without it a step counts as one
 * @param {number} [atOnce] how many run side by side; with more than one, a step's output comes when it ends
 * @returns {Promise<{passed: number, failed: number}>}
 */
export async function runSteps(steps, atOnce = 1) {
  const total = { passed: 0, failed: 0 };
  const failures = [];
  const waiting = [...steps];
  const work = async () => {
    for (let step = waiting.shift(); step !== undefined; step = waiting.shift()) {
      const startedMs = Date.now();
      const [program, ...args] = step.node ? [node24(), ...step.node] : step.program;
      if (atOnce === 1) process.stdout.write(`\n── ${step.name}\n`);
      const { code, output, timedOut } = await run(program, args, step, atOnce === 1);
      if (atOnce > 1) process.stdout.write(`\n── ${step.name}\n${output}`);
      const counted = step.count?.(output) ?? { passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1 };
      if (code !== 0 && counted.failed === 0) counted.failed = 1;
      total.passed += counted.passed;
      total.failed += counted.failed;
      const seconds = ((Date.now() - startedMs) / 1000).toFixed(1);
      process.stdout.write(
        `── ${step.name}: ${code === 0 ? 'ok' : timedOut ? `stopped after ${step.timeoutMs / 1000} s` : 'failed'}, ${seconds} s\n`,
      );
      if (code !== 0)
        failures.push(
          `${step.name}: ${[program, ...args]
            .map((arg) => shorten(arg))
            .join(' ')
            .slice(0, 300)}`,
        );
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  if (failures.length > 0)
    process.stdout.write(`\nFailed; repeat with:\n${failures.map((line) => `  ${line}`).join('\n')}\n`);
  return total;
}

const shorten = (arg) => (arg.startsWith(root) ? relative(root, arg) : arg);

function run(program, args, { timeoutMs, env }, aloud) {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: root,
      env: { ...process.env, ...env },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    let timedOut = false;
    const take = (stream) => (chunk) => {
      output += chunk;
      if (aloud) stream.write(chunk);
    };
    child.stdout.on('data', take(process.stdout));
    child.stderr.on('data', take(process.stderr));
    const limit = setTimeout(() => {
      timedOut = true;
      // The whole group: a hung grandchild must not hold the pipe open.
      process.kill(-child.pid, 'SIGKILL');
    }, timeoutMs);
    child.on('error', (error) => resolve({ code: 1, output: String(error), timedOut }));
    child.on('close', (code) => {
      clearTimeout(limit);
      resolve({ code: code ?? 1, output, timedOut });
    });
  });
}
