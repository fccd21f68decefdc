/**
 * Work that may be asked for more often than it can be done: it starts at once, and what is asked for meanwhile is done
 * once more, `restMs` after it has ended. It must not reject.
 */
export function oneAtATime(work: () => Promise<void>, restMs: number): () => void {
  let isBusy = false;
  let isWanted = false;
  async function run(): Promise<void> {
    isBusy = true;
    isWanted = false;
    await work();
    setTimeout(() => {
      isBusy = false;
      if (isWanted) void run();
    }, restMs);
  }
  return () => {
    if (isBusy) isWanted = true;
    else void run();
  };
}
