import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { forTerminal, forWindow } from '../../main/contract/wayOut.ts';

test('what only a command line has is typed as it is called there, and is not said in the window', () => {
  const words = 'Resume it first (tessera resume 7), or choose a home (--home DIR, TESSERA_HOME).';
  expect(forTerminal(words, 'npm run -s tessera --')).toBe(
    'Resume it first (npm run -s tessera -- resume 7), or choose a home (--home DIR, TESSERA_HOME).',
  );
  expect(forWindow(words)).toBe('Resume it first, or choose a home.');
  expect(forWindow("(in Columns, or with --role bot=user) 'tessera'")).toBe("(in Columns) 'tessera'");
  expect(forWindow('accept them (acceptSlow: true, or --accept-slow).')).toBe(
    'accept them (acceptSlow: true).',
  );
});

test('every command and option that the core names stands in such brackets', () => {
  const commands = readdirSync('main/cli/commands').map((file) => file.split(/[A-Z.]/)[0]);
  const named = new RegExp(`\\btessera (?:${commands.join('|')})\\b|[ (]--[a-z][a-z-]+(?! [=.])`);
  const left = ['main/core', 'main/contract', 'db'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .flatMap((file) =>
        // Words, not arguments: with a space, and no comment.
        [...readFileSync(join(folder, file), 'utf8').matchAll(/^(?!\s*[/*]).*?(['`])(.* .*)\1/gm)]
          .map(([, , text = '']) => forWindow(text))
          .filter((text) => named.test(text))
          .map((text) => `${folder}/${file}: ${text}`),
      ),
  );
  expect(left).toEqual([]);
});
