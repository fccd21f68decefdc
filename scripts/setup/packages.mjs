import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { logDir, node24, root, stampHolds, writeStamp } from './paths.mjs';
import { runLogged, SetupError } from './report.mjs';

const fingerprint = () =>
  createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .update(`${process.platform}-${process.arch}`)
    .digest('hex');

export const packages = {
  name: 'packages',
  isDone: () =>
    existsSync(join(root, 'node_modules/vue/package.json')) && stampHolds('packages', fingerprint()),
  async run() {
    const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
    await runLogged({
      label: 'Packages:',
      command: npm,
      args: ['ci', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=http'],
      cwd: root,
      // Node's own variables of an outer npm would change where this one installs.
      env: Object.fromEntries(
        Object.entries(process.env).filter(([key]) => !/^npm_(config_prefix|lifecycle|package)/.test(key)),
      ),
      logFile: join(logDir, 'npm-ci.log'),
      timeoutMs: 15 * 60_000,
      progress: countFetches(),
    });
    if (!node24()) {
      throw new SetupError(
        `No Node 24 for ${process.platform}-${process.arch} came with the packages, and this one is ${process.version}`,
        'Install Node 24 and run the command again.',
      );
    }
    writeStamp('packages', fingerprint());
  },
};

/** Of those that the lock file names for this system; what npm has in its cache is not fetched. */
function countFetches() {
  const { packages: locked } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const fits = (list, name) => !Array.isArray(list) || list.includes(name);
  const total = Object.values(locked).filter(
    // Only the integrity: an npm that is told so leaves the addresses out.
    ({ integrity, os, cpu }) => integrity && fits(os, process.platform) && fits(cpu, process.arch),
  ).length;
  let fetched = 0;
  return (line) =>
    /http fetch GET .*\.tgz/.test(line)
      ? { done: ++fetched, total: Math.max(total, fetched), unit: 'fetched' }
      : undefined;
}
