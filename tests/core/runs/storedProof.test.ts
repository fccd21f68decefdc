import { expect, test } from 'vitest';
import { currentProof } from '../../../main/core/runs/storedProof.ts';

const proof = {
  ...{ ok: false, device: 'cpu', positions: 64, layers: 4, modelLayers: 4, seconds: 1 },
  examples: [0, 3, 7],
  changed: [0],
  alone: { relativeError: 0, tolerance: 1e-4 },
  failures: [
    'changing the tokens of example 0 changed the output of example 3 at its position 2 by 0.5',
    'the loss of the other examples reaches example 7 at its position 0',
  ],
  message: 'changing the tokens of example 0 changed the output of example 3 at its position 2 by 0.5',
};

test('a proof of an older version, whose words count from 0, is told as ours are: words from 1, data from 0', () => {
  const { leaked, failures, message } = currentProof(proof);
  expect(leaked).toEqual([3, 7]);
  expect(failures[0]).toBe(
    'changing the tokens of example 1 changed the output of example 4 at its position 2 by 0.5',
  );
  expect(failures[1]).toBe('the loss of the other examples reaches example 8 at its position 0');
  expect(message).toBe(failures[0]);
});

test('a proof of this version stays as it is', () => {
  const own = { ...proof, leaked: [2] };
  expect(currentProof(own)).toBe(own);
});
