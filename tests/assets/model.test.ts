import { readdirSync, readFileSync, statSync } from 'node:fs';
import { expect, test } from 'vitest';
import { withSafetensors } from '../../main/core/safetensors.ts';

const folder = 'assets/models/workshop-3m';
const config = JSON.parse(readFileSync(`${folder}/config.json`, 'utf8')) as {
  vocab_size: number;
  hidden_size: number;
  layer_types: string[];
};

test('2 to 6 million parameters in at least 8 layers, three delta-net layers to one of attention', () => {
  const kinds = config.layer_types.map((kind) => (kind === 'full_attention' ? 'A' : 'D')).join('');
  expect(kinds).toMatch(/^(DDDA){2,}$/);
  withSafetensors(`${folder}/model.safetensors`, (file) => {
    const sizes = [...file.tensors.values()].map(({ shape }) => shape.reduce((a, b) => a * b, 1));
    const parameters = sizes.reduce((a, b) => a + b, 0);
    expect(parameters).toBeGreaterThan(2e6);
    expect(parameters).toBeLessThan(6e6);
    expect(file.info('model.embed_tokens.weight').shape).toEqual([config.vocab_size, config.hidden_size]);
    expect(file.tensors.has('lm_head.weight')).toBe(false);
  });
});

test('the model is small enough to be in the repository', () => {
  const sizes = readdirSync(folder).map((name) => statSync(`${folder}/${name}`).size);
  expect(sizes.reduce((a, b) => a + b, 0)).toBeLessThan(12e6);
});

test('the curve of its teaching ends at a plateau below 3.5 nats, as the README says', () => {
  const heldOut = readFileSync(`${folder}/teaching-curve.csv`, 'utf8')
    .trimEnd()
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const loss = line.split(',')[2];
      return loss ? [Number(loss)] : [];
    });
  const [before = NaN, last = NaN] = [heldOut.at(-3), heldOut.at(-1)];
  expect(last).toBeLessThan(3.5);
  expect(before - last).toBeLessThan(0.02);
  expect(readFileSync(`${folder}/README.md`, 'utf8')).toContain(`${last.toFixed(3)} after`);
});
