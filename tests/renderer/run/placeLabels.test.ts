import { expect, test } from 'vitest';
import { placeLabels, type Bubble } from '../../../renderer/views/run/profile/placeLabels.ts';

const picture = { width: 600, height: 200 };

test('a name stands at the right, at the edge at the left, and between neighbours above or below', () => {
  const place = (bubbles: Bubble[]) => placeLabels(bubbles, picture)[0];
  expect(place([{ x: 300, y: 100, radius: 8, text: 'linear_fwd' }])).toBe('right');
  expect(place([{ x: 590, y: 100, radius: 8, text: 'linear_fwd' }])).toBe('left');
  const sides = [330, 270].map((x) => ({ x, y: 100, radius: 8 }));
  expect(place([{ x: 300, y: 100, radius: 8, text: 'linear_fwd' }, ...sides])).toBe('top');
  expect(
    place([{ x: 300, y: 6, radius: 5, text: 'linear_fwd' }, ...sides.map((one) => ({ ...one, y: 6 }))]),
  ).toBe('bottom');
});

test('where every side is taken there is no name, rather than one over another', () => {
  const crowd = Array.from({ length: 60 }, (_, i) => ({
    ...{ x: 280 + (i % 10) * 5, y: 80 + Math.floor(i / 10) * 6, radius: 9, text: 'gated_delta_rule' },
  }));
  const sides = placeLabels(crowd, picture);
  expect(sides.filter((side) => side !== undefined).length).toBeLessThan(12);
  expect(placeLabels([{ x: 10, y: 10, radius: 3 }], picture)).toEqual([undefined]);
});
