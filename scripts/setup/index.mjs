// Everything a fresh clone needs, step by step. Each step knows whether it is done, so that a second run passes in
// milliseconds and an interrupted one goes on where it was.
import { electron } from './electron.mjs';
import { withLock } from './lock.mjs';
import { nativeBuild } from './native.mjs';
import { packages } from './packages.mjs';
import { say, SetupError } from './report.mjs';
import { systemLibraries } from './system.mjs';

const steps = {
  packages: [packages],
  native: [systemLibraries('native')],
  engine: [packages, systemLibraries('native'), nativeBuild({ tests: false })],
  engineTests: [packages, systemLibraries('native'), nativeBuild({ tests: true })],
  format: [systemLibraries('format')],
  electron: [packages, systemLibraries('electron'), electron],
};

/** @param {(keyof typeof steps)[]} needs Ends the process with the reason and the way out where a step fails. */
export async function setUp(needs) {
  await take([...new Set(needs.flatMap((need) => steps[need]))]);
}

/** Takes those steps that are not done, one after the other, one set-up at a time. */
export async function take(wanted) {
  if (wanted.every((step) => step.isDone())) return;
  try {
    await withLock(async () => {
      const startedMs = Date.now();
      const missing = wanted.filter((step) => !step.isDone());
      for (const [index, step] of missing.entries()) {
        if (step.isDone()) continue;
        say(`Set-up ${index + 1} of ${missing.length}: ${step.name}`);
        await step.run();
      }
      say(`Set-up finished in ${Math.round((Date.now() - startedMs) / 1000)} s.`);
    });
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    process.stderr.write(`\nSet-up stopped: ${error.message}\n${error.hint ?? ''}\n`);
    process.exit(1);
  }
}
