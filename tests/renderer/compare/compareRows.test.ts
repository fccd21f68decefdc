// @vitest-environment happy-dom
/* eslint-disable vue/one-component-per-file -- what is mounted, and the link that it needs */
import { createApp, h, nextTick } from 'vue';
import { expect, onTestFinished, test } from 'vitest';
import type { RunFigures, RunSummary } from '../../../main/contract/runs.ts';
import CompareRows from '../../../renderer/views/compare/CompareRows.vue';

const losses = [1.5, undefined, 1.2, 1.9, 1.4, 1.6, 1.7, 1.8, 1.3, 2.1];
const runs = losses.map((lastLoss, i) => ({
  run: { id: `r${String(i)}`, name: `sweep ${String(i)}`, lastLoss, steps: 9 } as unknown as RunSummary,
  color: 'c1',
}));
const figures = runs.map((): RunFigures => ({ realTokens: 10, positions: 10 }));
const differences = [{ field: 'optimizer.lr', values: runs.map((_, i) => 10 ** -i) }];

function mount() {
  const told: string[] = [];
  const host = document.body.appendChild(document.createElement('div'));
  const app = createApp({
    render: () =>
      h(CompareRows, {
        ...{ runs, figures, differences },
        onRemove: (id: string) => told.push(`remove ${id}`),
        'onUpdate:focused': (id: string | undefined) => told.push(`focus ${id ?? 'none'}`),
      }),
  });
  app.component('RouterLink', { render: () => h('a') });
  app.mount(host);
  onTestFinished(() => {
    app.unmount();
    host.remove();
    localStorage.clear();
  });
  const ids = () => [...host.querySelectorAll<HTMLElement>('[data-run]')].map(({ dataset }) => dataset.run);
  const press = async (selector: string) => {
    host.querySelector<HTMLElement>(selector)?.click();
    await nextTick();
  };
  return { host, ids, press, told };
}

test('many runs are found by name and sorted by what came of them, those without it last', async () => {
  const { host, ids, press } = mount();
  expect(ids()).toHaveLength(10);
  await press('[title="Sort by Loss, last steps"]');
  expect(ids()).toEqual(['r2', 'r8', 'r4', 'r0', 'r5', 'r6', 'r7', 'r3', 'r9', 'r1']);
  await press('[title="Sort by Loss, last steps"]');
  expect(ids().slice(0, 2)).toEqual(['r9', 'r3']);
  expect(ids().at(-1)).toBe('r1');
  const search = host.querySelector('input');
  if (search === null) throw new Error('no search');
  search.value = 'SWEEP 7';
  search.dispatchEvent(new Event('input'));
  await nextTick();
  expect(ids()).toEqual(['r7']);
  expect(host.textContent).toContain('1 of 10');
});

test('the row under the pointer is told of, a run is taken out, a field is put aside', async () => {
  const { host, press, told } = mount();
  const row = host.querySelector('[data-run="r3"]');
  row?.dispatchEvent(new MouseEvent('mouseenter'));
  row?.dispatchEvent(new MouseEvent('mouseleave'));
  await press('[aria-label="Take sweep 4 out"]');
  expect(told).toEqual(['focus r3', 'focus none', 'remove r4']);
  expect(host.querySelector('[title="Sort by optimizer.lr"]')).not.toBeNull();
  await press('[aria-label="Put optimizer.lr aside"]');
  expect(host.querySelector('[title="Sort by optimizer.lr"]')).toBeNull();
  await press('[aria-label="Show optimizer.lr again"]');
  expect(host.querySelector('[title="Sort by optimizer.lr"]')).not.toBeNull();
});
