import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EngineProcess, runEngine } from '../../../main/core/engine/engineProcess.ts';
import { openHome } from '../../../main/core/home.ts';
import { forecastRun } from '../../../main/core/runs/memory.ts';
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

describe('an engine that cannot be run', () => {
  it('is named, with the way out', async () => {
    otherEngine({ event: 'hello' });
    chmodSync(process.env.TESSERA_ENGINE!, 0o644);
    const { problems } = await examine(openHome(folder));
    const problem = problems.find(({ code }) => code === 'engineStart');
    expect(problem?.message).toMatch(/other-engine could not be started: .*EACCES/);
    expect(problem?.hint).toMatch(/TESSERA_ENGINE/);
  });

  it('does not answer for ever', async () => {
    writeFileSync(join(folder, 'silent'), '#!/bin/sh\nexec sleep 600\n', { mode: 0o755 });
    process.env.TESSERA_ENGINE = join(folder, 'silent');
    await expect(runEngine(['hello'], { limitMs: 100 })).rejects.toMatchObject({
      code: 'engineSilent',
      message: expect.stringContaining('within 0.1 s') as string,
    });
  });
});

/** A program in the engine's place that was built from other sources: all that it says is `lines`. */
function otherEngine(...lines: object[]): void {
  const path = join(folder, 'other-engine');
  const said = lines.map((line) => `echo '${JSON.stringify(line)}'`).join('\n');
  writeFileSync(path, `#!/bin/sh\n${said}\n`);
  chmodSync(path, 0o755);
  process.env.TESSERA_ENGINE = path;
}

describe('an engine built from other sources is named, with the way out', () => {
  const hello = { event: 'hello', version: '9.9.9', devices: [], kernels: [] };

  it('by its protocol', async () => {
    otherEngine({ ...hello, protocol: 7 });
    const { problems } = await examine(openHome(folder));
    const problem = problems.find(({ code }) => code === 'engineProtocol');
    expect(problem?.message).toMatch(/other-engine speaks protocol 7, this program 1/);
    expect(problem?.hint).toMatch(/TESSERA_ENGINE/);
  });

  it('by the shape of an answer, not as raw JSON', async () => {
    otherEngine({ version: '9.9.9', memory: { total: 1 }, recompute: 'P0' });
    const asked = forecastRun({ folder, model: folder, cache: folder });
    await expect(asked).rejects.toMatchObject({
      code: 'engineMismatch',
      message: expect.stringMatching(/version 9\.9\.9.*answer to 'train' fixedShapes is missing/) as string,
      hint: expect.stringContaining('TESSERA_ENGINE') as string,
    });
  });

  it('by an event that it says otherwise: none is lost unseen', async () => {
    otherEngine({ ...hello, protocol: 1 }, { event: 'brandNew' }, { event: 'checkpoint', path: 'x' });
    const events: string[] = [];
    const engine = new EngineProcess({
      ...{ name: 'other', args: [], log: () => undefined },
      onEvent: ({ event }) => events.push(event),
    });
    const { error } = await engine.exited;
    expect(events).toEqual(['hello']);
    expect(error).toMatchObject({
      code: 'engineMismatch',
      message: expect.stringContaining('step is missing') as string,
    });
  });
});
