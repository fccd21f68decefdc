/** The `loop` variable of a for block. */
import { typeError } from './errors.ts';
import { equal } from './operators.ts';
import { Callable, Tuple, Undefined, orElse } from './values.ts';
import type { Value } from './values.ts';

export class Loop extends Callable {
  readonly #items: readonly Value[];
  readonly #depth0: number;
  #lastChanged: Tuple | undefined;
  /** Current round, from 0. */
  index0 = 0;

  /** `recurse` renders the body for other items, one level deeper; absent unless the loop is recursive. */
  constructor(
    items: readonly Value[],
    depth0: number,
    recurse: ((items: Value, depth0: number) => Value) | undefined,
  ) {
    super(
      'loop',
      ([inner]) => {
        if (!recurse) throw typeError("The loop must have the 'recursive' marker to be called recursively.");
        if (inner === undefined) throw typeError('loop() is missing its iterable');
        return recurse(inner, depth0 + 1);
      },
      'LoopContext',
    );
    this.#items = items;
    this.#depth0 = depth0;
  }

  override getAttribute(name: string): Value | undefined {
    const { index0 } = this;
    const { length } = this.#items;
    switch (name) {
      case 'index':
        return index0 + 1;
      case 'index0':
        return index0;
      case 'revindex':
        return length - index0;
      case 'revindex0':
        return length - index0 - 1;
      case 'first':
        return index0 === 0;
      case 'last':
        return index0 === length - 1;
      case 'length':
        return length;
      case 'depth':
        return this.#depth0 + 1;
      case 'depth0':
        return this.#depth0;
      case 'previtem':
        return index0 === 0 ? new Undefined('there is no previous item') : this.#items[index0 - 1];
      case 'nextitem':
        return orElse(this.#items[index0 + 1], () => new Undefined('there is no next item'));
      case 'cycle':
        return new Callable(name, (args) => this.#cycle(args));
      case 'changed':
        return new Callable(name, (args) => this.#changed(new Tuple(args)));
    }
    return undefined;
  }

  #cycle(args: readonly Value[]): Value {
    if (args.length === 0) throw typeError('no items for cycling given');
    return args[this.index0 % args.length] ?? null;
  }

  #changed(values: Tuple): boolean {
    if (this.#lastChanged && equal(this.#lastChanged, values)) return false;
    this.#lastChanged = values;
    return true;
  }

  override toRepr(): string {
    return `<LoopContext ${this.index0 + 1}/${this.#items.length}>`;
  }
}
