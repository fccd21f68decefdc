import { expect, test, vi } from 'vitest';

vi.mock('electron', () => ({ app: {} }));
const { withHome } = await import('../../../main/instance/relaunch.ts');

test('a start in another home keeps all arguments but the old home', () => {
  expect(withHome(['.', '--home', '/a', '--gpu'], '/b c')).toEqual(['.', '--gpu', '--home=/b c']);
  expect(withHome(['--home=/a', 'x.jsonl'], '/b')).toEqual(['x.jsonl', '--home=/b']);
  expect(withHome([], '/b')).toEqual(['--home=/b']);
});
