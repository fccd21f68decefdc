/** What changes with every step is shown together, at most ten times a second, and less often where that takes long. */
const minIntervalMs = 100;
const maxIntervalMs = 1000;
/** What drawing may take of the page's thread. */
const drawingShare = 0.15;

export interface DrawClock {
  now: () => number;
  later: (work: () => void, ms: number) => void;
}

/**
 * `ask(work)`: `work` is done with the next picture, once however often it was asked for; what it asks for in turn (new
 * data its charts) comes into the same picture. `forget` takes it back.
 */
export function createDrawQueue(clock: DrawClock) {
  const waiting = new Set<() => void>();
  let isScheduled = false;
  let startedAtMs = -Infinity;
  let intervalMs = minIntervalMs;

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    clock.later(drawAll, Math.max(0, startedAtMs + intervalMs - clock.now()));
  }

  function drawAll(): void {
    startedAtMs = clock.now();
    const done = new Set<() => void>();
    try {
      for (const work of waiting) {
        // Asked for again by one that came after it: in the next picture.
        if (done.has(work)) continue;
        // Out first: one that throws takes none of the others with it.
        waiting.delete(work);
        done.add(work);
        work();
      }
    } finally {
      const costMs = clock.now() - startedAtMs;
      intervalMs = Math.min(maxIntervalMs, Math.max(minIntervalMs, costMs / drawingShare));
      isScheduled = false;
      if (waiting.size > 0) schedule();
    }
  }

  return {
    ask: (work: () => void) => {
      waiting.add(work);
      schedule();
    },
    forget: (work: () => void) => {
      waiting.delete(work);
    },
  };
}

/** The page's own. */
export const drawQueue = createDrawQueue({
  now: () => performance.now(),
  later: (work, ms) => {
    setTimeout(work, ms);
  },
});
