/** Something that happens; whoever listens at that time hears it. Where nobody does yet, the last ones wait. */
export interface Topic<T> {
  emit: (event: T) => void;
  /** Returns how to stop listening. */
  listen: (listener: (event: T) => void) => () => void;
}

export function createTopic<T>(): Topic<T> {
  const listeners = new Set<(event: T) => void>();
  let waiting: T[] = [];
  return {
    emit: (event) => {
      if (listeners.size === 0) waiting = [...waiting.slice(-15), event];
      for (const listener of listeners) listener(event);
    },
    listen: (listener) => {
      listeners.add(listener);
      for (const event of waiting) listener(event);
      waiting = [];
      return () => listeners.delete(listener);
    },
  };
}

/** A value that can be read at any time and watched: a listener hears the present one first. */
export interface Value<T> {
  get: () => T;
  set: (value: T) => void;
  watch: (listener: (value: T) => void) => () => void;
}

export function createValue<T>(initial: T): Value<T> {
  const listeners = new Set<(value: T) => void>();
  let value = initial;
  return {
    get: () => value,
    set: (next) => {
      value = next;
      for (const listener of listeners) listener(next);
    },
    watch: (listener) => {
      listeners.add(listener);
      listener(value);
      return () => listeners.delete(listener);
    },
  };
}

/** The first value, from the present one on, that is wanted. */
export function nextValue<T>(value: Value<T>, isWanted: (value: T) => boolean): Promise<T> {
  return new Promise((resolve) => {
    if (isWanted(value.get())) {
      resolve(value.get());
      return;
    }
    const stop = value.watch((next) => {
      if (!isWanted(next)) return;
      stop();
      resolve(next);
    });
  });
}
