import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pack-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

function pack(...args: string[]): Promise<{ exitCode: number; json: Record<string, unknown> }> {
  return new Promise((resolve) => {
    const command = ['main/cli/main.ts', 'pack', ...args, '--json'];
    const child = execFile(process.execPath, command, (_error, stdout) => {
      resolve({ exitCode: child.exitCode ?? -1, json: JSON.parse(stdout) as Record<string, unknown> });
    });
  });
}

function lengthsFile(text: string): string {
  const path = join(folder, 'lengths.txt');
  writeFileSync(path, text);
  return path;
}

test('lengths are packed; whole examples are indices, parts say what they are', async () => {
  const file = lengthsFile('7\r\n5\n\n3\n');
  const { exitCode, json } = await pack(
    ...['--lengths', file, '--budget', '5', '--strategy', 'in-order', '--overlong', 'split', '--placements'],
  );
  expect(exitCode).toBe(0);
  expect(json).toMatchObject({
    ...{
      strategy: 'in-order',
      budget: 5,
      examples: 3,
      bins: 4,
      steps: 4,
      tokens: 15,
      positions: 15,
      fill: 0.75,
    },
    dropped: { overlong: 0, nothingToLearn: 0 },
    truncated: { examples: 0, tokens: 0 },
  });
  const parts = [
    { example: 0, start: 0, length: 5 },
    { example: 0, start: 5, length: 2 },
  ];
  expect(json.placements).toEqual([[parts[0]], [parts[1]], [1], [2]]);
});

test('several budgets and strategies come as a list', async () => {
  const file = lengthsFile('3\n4\n5\n');
  const { json } = await pack('--lengths', file, '--budget', '6,12', '--strategy', 'bfd,padded');
  const plans = json.plans as { budget: number; strategy: string; bins: number }[];
  expect(plans.map(({ budget, strategy, bins }) => [budget, strategy, bins])).toEqual([
    ...[
      [6, 'bfd', 3],
      [6, 'padded', 3],
    ],
    ...[
      [12, 'bfd', 1],
      [12, 'padded', 2],
    ],
  ]);
});

test('epochs, ranks and accumulation stand in the answer, and steps follow from them', async () => {
  const file = lengthsFile('5\n5\n5\n5\n5\n');
  const args = ['--budget', '5', '--epochs', '2', '--ranks', '2', '--accumulate', '2'];
  const { json } = await pack('--lengths', file, ...args);
  expect(json).toMatchObject({ epochs: 2, ranks: 2, gradAccumulation: 2, bins: 10, steps: 3, tokens: 50 });
});

test.each([
  ['12\nabc\n', ['--budget', '8'], 1, 'badLength', /lengths\.txt:2: 'abc'/],
  ['3\n-4\n', ['--budget', '8'], 1, 'badLength', /lengths\.txt:2: '-4'/],
  ['\n', ['--budget', '8'], 1, 'noExamples', /holds no lengths/],
  ['0\n0\n', ['--budget', '8'], 1, 'nothingToLearn', /2 have nothing to learn/],
  ['9\n', ['--budget', '8', '--overlong', 'drop'], 1, 'nothingToLearn', /1 is longer than the budget of 8/],
  ['5\n5\n', ['--budget', '8', '--ranks', '3'], 1, 'tooManyRanks', /2 bins cannot be shared by 3 ranks/],
  ['5\n', ['--budget', '8', '--forecast'], 2, 'usage', /--forecast needs a dataset/],
  ['5\n', ['--budget', '0'], 1, 'badBudget', /the budget is 0/],
  ['5\n', ['--budget', '1'], 1, 'badBudget', /the budget is 1/],
  ['5\n', ['--budget', '-3'], 1, 'badBudget', /the budget is -3/],
  ['5\n', [], 2, 'usage', /--budget N is missing/],
  ['5\n', ['--budget', '8', '--strategy', 'worst'], 2, 'usage', /--strategy is one of padded/],
  ['5\n', ['--budget', 'many'], 2, 'usage', /--budget takes a whole number/],
])('%j with %j is refused', async (text, args, exitCode, code, message) => {
  const result = await pack('--lengths', lengthsFile(text), ...args);
  expect(result.exitCode).toBe(exitCode);
  expect(result.json.error).toMatchObject({ code, message: expect.stringMatching(message) as string });
  // What is wrong with the data comes with the way out.
  if (code !== 'usage')
    expect(result.json.error).toMatchObject({ hint: expect.stringMatching(/\.$/) as string });
});

test('a missing file is named', async () => {
  const { exitCode, json } = await pack('--lengths', join(folder, 'none.txt'), '--budget', '8');
  expect(exitCode).toBe(1);
  expect(json.error).toMatchObject({
    code: 'noFile',
    message: `there is no file or folder ${join(folder, 'none.txt')}`,
  });
});
