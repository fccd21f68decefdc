import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { listCheckpoints } from '../../../main/core/runs/checkpoints.ts';
import { newestCheckpoint } from '../../../main/core/runs/recover.ts';
import { runFiles } from '../../../main/core/runs/runFolder.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tessera-checkpoints-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

it('takes finished checkpoints alone, not what an engine was killed over', () => {
  const { out } = runFiles(folder);
  const write = (name: string, step: number, isWhole = true) => {
    mkdirSync(join(out, name), { recursive: true });
    writeFileSync(join(out, name, 'state.json'), JSON.stringify({ step }));
    if (isWhole) writeFileSync(join(out, name, 'manifest.json'), '{}');
  };
  write('checkpoint-00000004', 4);
  write('checkpoint-00000006', 6, false);
  write('.checkpoint-00000008.partial', 8);
  writeFileSync(join(out, 'checkpoint-00000009'), 'a file');
  expect(newestCheckpoint(out)?.step).toBe(4);
  const row = { id: 'a', name: 'a', folder, bestStep: 4 };
  expect(listCheckpoints(row).map(({ step }) => step)).toEqual([4]);
});
