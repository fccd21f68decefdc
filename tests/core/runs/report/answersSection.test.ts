import { expect, test } from 'vitest';
import { answersSection } from '../../../../main/core/runs/report/answersSection.ts';

test('a report shows what the model answered to each prompt, step by step', () => {
  const sample = (step: number, position: number, text: string) => ({
    ...{ step, position, text },
    prompt: position === 0 ? 'How do I sharpen a <chisel>?' : 'Why?',
  });
  const samples = [
    sample(0, 0, 'A blunt'),
    sample(8, 0, 'On a & stone'),
    sample(8, 1, ''),
    sample(16, 0, 'Slowly'),
  ];
  const html = answersSection({ samples }, ' of one');
  expect(html).toContain('<h2>Answers of one</h2>');
  expect(html.match(/<table/g)).toHaveLength(2);
  expect(html).toMatch(
    /sharpen a &lt;chisel&gt;[^]*<th>before<[^]*A blunt[^]*step 8<[^]*On a &amp; stone[^]*step 16<[^]*Slowly[^]*Why\?[^]*nothing/,
  );
  expect(answersSection({ samples: [] }, '')).toBe('');
});
