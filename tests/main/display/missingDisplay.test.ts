import { describe, expect, it } from 'vitest';
import { missingDisplay } from '../../../main/display/missingDisplay.ts';

const sockets = [
  '0000000000000000: 00000002 00000000 00010000 0001 01 123 /tmp/.X11-unix/X9',
  '0000000000000000: 00000002 00000000 00010000 0001 01 124 @/tmp/.X11-unix/X3',
].join('\n');

describe('whether there is a display', () => {
  it('names the variables that are not set', () => {
    expect(missingDisplay({}, 'linux', sockets)).toContain('neither DISPLAY nor WAYLAND_DISPLAY');
    expect(missingDisplay({ DISPLAY: '' }, 'linux', sockets)).toContain('neither');
  });
  it('names a display of this machine that nothing serves', () => {
    expect(missingDisplay({ DISPLAY: ':99' }, 'linux', sockets)).toContain(':99');
    expect(missingDisplay({ DISPLAY: ':99.0' }, 'linux', sockets)).toContain(':99.0');
  });
  it('finds one in the file system and one in the abstract name space', () => {
    expect(missingDisplay({ DISPLAY: ':9' }, 'linux', sockets)).toBeUndefined();
    expect(missingDisplay({ DISPLAY: ':3.0' }, 'linux', sockets)).toBeUndefined();
  });
  it('leaves to Electron what it cannot know: other machines, Wayland, other systems, no list of sockets', () => {
    expect(missingDisplay({ DISPLAY: 'localhost:10.0' }, 'linux', sockets)).toBeUndefined();
    expect(missingDisplay({ WAYLAND_DISPLAY: 'wayland-0' }, 'linux', sockets)).toBeUndefined();
    expect(missingDisplay({}, 'darwin', sockets)).toBeUndefined();
    expect(missingDisplay({ DISPLAY: ':99' }, 'linux', undefined)).toBeUndefined();
  });
});
