import type { Port } from '../contract/port.ts';

/** Resolves when the link is gone, whoever ended it. */
export function watchPort(port: Port): Promise<void> {
  return new Promise((resolve) => {
    port.start(
      () => undefined,
      () => {
        resolve();
      },
    );
  });
}
