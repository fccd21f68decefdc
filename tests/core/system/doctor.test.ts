import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openHome } from '../../../main/core/home.ts';
import { examine } from '../../../main/core/system/doctor.ts';

let folder: string;
const engine = process.env.TESSERA_ENGINE;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tessera-doctor-'));
});
afterEach(() => {
  if (engine === undefined) delete process.env.TESSERA_ENGINE;
  else process.env.TESSERA_ENGINE = engine;
  rmSync(folder, { recursive: true, force: true });
});

describe('doctor', { timeout: 60_000 }, () => {
  it('says what is there, and that there is no GPU exactly where there is none', async () => {
    const report = await examine(openHome(folder));
    expect(report.engine.backends).toContain('cpu');
    expect(report.engine.kernels.length).toBeGreaterThan(5);
    expect(report.disk.freeBytes).toBeGreaterThan(0);
    expect(report.memory.totalBytes).toBeGreaterThan(report.memory.freeBytes);
    expect(report.cpu.cores).toBeGreaterThan(0);
    const codes = report.problems.map(({ code }) => code);
    expect(codes.includes('noGpu')).toBe(report.gpus.length === 0);
  });

  it('goes on without an engine, and names the way out', async () => {
    process.env.TESSERA_ENGINE = join(folder, 'no-such-engine');
    const report = await examine(openHome(folder));
    const problem = report.problems.find(({ code }) => code === 'noEngine');
    expect(problem?.message).toContain('no-such-engine');
    expect(report.gpus).toEqual([]);
    expect(report.disk.totalBytes).toBeGreaterThan(0);
  });
});
