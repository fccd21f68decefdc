import { expect, it } from 'vitest';
import { preflightText } from '../../main/cli/preflightText.ts';

it('a preflight reads as a checklist; kinds of layers have the names that the window gives them', () => {
  const kernel = {
    layerKind: 'linear_attention',
    operation: 'norm',
    tier: 'cpu',
    reason: 'plain',
    slow: false,
  };
  const text = preflightText({
    ...{ ok: true, steps: 3, memory: { weights: 2 ** 20, total: 2 ** 20 } },
    items: [
      { name: 'data', status: 'pass', message: '2 examples' },
      { name: 'learning rate', status: 'warn', message: '0 at every step', hint: 'Raise it.' },
    ],
    kernels: [{ ...kernel, forward: 'rms_fwd', backward: 'rms_bwd' }],
  });
  expect(text.split('\n').slice(0, 4)).toEqual([
    '✓ data          2 examples',
    '! learning rate 0 at every step',
    '                Raise it.',
    '  memory of     weights 1 MiB',
  ]);
  expect(text).toMatch(/linear attention +norm +rms_fwd, rms_bwd/);
  expect(text).not.toContain('linear_attention');
});
