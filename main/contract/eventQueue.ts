/**
 * Events on their way to one reader: one unacknowledged batch at a time, and while it is out at most `limit`
 * events wait. So memory is bounded however fast events come, and an idle reader gets each at once; batches follow one
 * another by `paceMs` or more, so that many small ones do not cost more than what is in them.
 */
export class EventQueue<E> {
  private readonly waiting = new Map<string | number, E>();
  private readonly limit: number;
  private readonly keyOf: (event: E) => string | undefined;
  private readonly send: (events: E[], numDropped: number) => void;
  private readonly paceMs: number;
  private nextAtMs = 0;
  private serial = 0;
  private numDropped = 0;
  private inFlight = false;
  private scheduled = false;
  private onDrained: (() => void) | undefined;

  constructor(
    limit: number,
    keyOf: (event: E) => string | undefined,
    send: (events: E[], numDropped: number) => void,
    paceMs = 0,
  ) {
    this.paceMs = paceMs;
    this.limit = limit;
    this.keyOf = keyOf;
    this.send = send;
  }

  push(event: E): void {
    const key = this.keyOf(event) ?? this.serial++;
    // A replaced event moves to the end: what waits stays in the order of its newest values.
    this.waiting.delete(key);
    this.waiting.set(key, event);
    if (this.waiting.size > this.limit) {
      for (const oldest of this.waiting.keys()) {
        this.waiting.delete(oldest);
        break;
      }
      this.numDropped += 1;
    }
    this.schedule();
  }

  acknowledge(): void {
    this.inFlight = false;
    if (this.waiting.size > 0) this.schedule();
    else this.onDrained?.();
  }

  /** Resolves when all has been sent and acknowledged, or the reader is gone. */
  drained(signal: AbortSignal): Promise<void> {
    if (!this.inFlight && this.waiting.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.onDrained = resolve;
      signal.addEventListener(
        'abort',
        () => {
          resolve();
        },
        { once: true },
      );
    });
  }

  /** Events pushed in one turn of the event loop travel together. */
  private schedule(): void {
    if (this.inFlight || this.scheduled) return;
    this.scheduled = true;
    const waitMs = this.nextAtMs - performance.now();
    const flush = () => {
      this.flush();
    };
    if (waitMs > 0) setTimeout(flush, waitMs);
    else queueMicrotask(flush);
  }

  private flush(): void {
    this.scheduled = false;
    if (this.inFlight || this.waiting.size === 0) return;
    const events = [...this.waiting.values()];
    const { numDropped } = this;
    this.waiting.clear();
    this.numDropped = 0;
    this.inFlight = true;
    this.nextAtMs = performance.now() + this.paceMs;
    this.send(events, numDropped);
  }
}
