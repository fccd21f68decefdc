import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { RunListRow } from '../../../db/queries/runs.ts';
import { sweepPrepared } from '../../../main/core/runs/deletion.ts';

test('what was prepared for a run that never began goes; what was trained or is no run stays', () => {
  const runs = mkdtempSync(join(tmpdir(), 'tessera-sweep-'));
  const [known, prepared, trained] = ['261130-092724-eebb83', '261130-092743-f5bb23', '261130-092757-7b7ac1'];
  for (const name of [known, prepared, trained, 'mine'])
    mkdirSync(join(runs, name, 'out'), { recursive: true });
  writeFileSync(join(runs, prepared, 'recipe.json'), '{}');
  writeFileSync(join(runs, trained, 'out', 'model.safetensors'), '');
  sweepPrepared(runs, { get: (id) => (id === known ? ({ id } as RunListRow) : undefined) }, () => undefined);
  expect([known, prepared, trained, 'mine'].map((name) => existsSync(join(runs, name)))).toEqual([
    true,
    false,
    true,
    true,
  ]);
  rmSync(runs, { recursive: true });
});
