import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readlinkSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

test.runIf(process.platform === 'linux')(
  'a core holds no file of who started it, even where few may be open and one has the highest number',
  () => {
    const home = realpathSync(mkdtempSync(join(tmpdir(), 'tessera-inherited-')));
    const held = join(home, 'held');
    const command = `ulimit -n 64; exec 40>"$1" 63>"$1"; exec "$2" "$3" core info --json --home "$4"`;
    const words = [held, process.execPath, join(root, 'main/cli/main.ts'), home];
    const told = execFileSync('bash', ['-c', command, 'bash', ...words], { encoding: 'utf8' });
    const { pid } = JSON.parse(told) as { pid: number };
    onTestFinished(() => {
      process.kill(pid);
      rmSync(home, { recursive: true, force: true, maxRetries: 5 });
    });
    const folder = `/proc/${String(pid)}/fd`;
    const open = readdirSync(folder).map((fd) => readlinkSync(join(folder, fd)));
    expect(open.some((file) => file.startsWith(home))).toBe(true);
    expect(open).not.toContain(held);
  },
);
