/** Listeners of one kind of event; a listener that is gone is forgotten. */
export class Emitter<E> {
  private readonly listeners = new Set<(event: E) => void>();

  emit(event: E): void {
    for (const listener of this.listeners) listener(event);
  }

  /** Returns what ends the listening. */
  listen(listener: (event: E) => void): () => void {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  }
}
