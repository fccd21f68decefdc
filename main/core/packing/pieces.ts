import { TesseraError } from '../../contract/errors.ts';

/** What becomes of an example longer than the budget. */
export type Overlong = 'drop' | 'truncate' | 'split';

/** A dataset as packing sees it: one entry an example. */
export interface Examples {
  /** Tokens. */
  lengths: Int32Array;
  /**
   * Index within the example of the first token that is a target, -1 or its length where none is. The
   * first token never is one: nothing predicts it. Without this, nothing is dropped for lack of a target.
   */
  firstTarget?: Int32Array;
  /** 1 where the example is plain text. Without it `split` splits whatever is too long. */
  isText?: Uint8Array;
}

/** What was left out or shortened, in examples and in tokens. */
export interface Losses {
  dropped: { overlong: number; nothingToLearn: number; tokens: number };
  truncated: { examples: number; tokens: number };
}

/** The parts of examples to be packed, each at most a budget long: piece i is `length[i]` tokens from `start[i]`. */
export interface Pieces extends Losses {
  example: Int32Array;
  start: Int32Array;
  length: Int32Array;
  /** Sum of `length`. */
  tokens: number;
}

/**
 * Applies the overlong rule: chats are truncated at their end and texts split, unless `overlong` says otherwise.
 * `split` never cuts a chat that is known to be one, since its later pieces would be answers without their context:
 * those are truncated. Examples without a token or a target (left) are dropped and counted.
 */
export function cutToBudget(examples: Examples, budget: number, overlong?: Overlong): Pieces {
  const { lengths, firstTarget, isText } = examples;
  const out = new PieceList(lengths.length);
  for (let i = 0; i < lengths.length; i++) {
    const length = lengths[i] as number;
    if (length < 0) {
      throw new TesseraError(
        'badLength',
        `example ${i} has the length ${length}`,
        'Lengths are counts of tokens.',
      );
    }
    const target = firstTarget ? (firstTarget[i] as number) : 1;
    if (length === 0 || (firstTarget && (target < 1 || target >= length))) {
      out.drop('nothingToLearn', length);
    } else if (length <= budget) {
      out.add(i, 0, length);
    } else {
      const rule = overlong ?? (isText?.[i] ? 'split' : 'truncate');
      if (rule === 'drop') out.drop('overlong', length);
      else if (rule === 'split' && isText?.[i] !== 0) out.split(i, length, budget);
      else if (target < budget) out.truncate(i, length, budget);
      else out.drop('nothingToLearn', length);
    }
  }
  return out.finish();
}

class PieceList {
  #example: Int32Array;
  #start: Int32Array;
  #length: Int32Array;
  #count = 0;
  #tokens = 0;
  readonly #losses: Losses = {
    dropped: { overlong: 0, nothingToLearn: 0, tokens: 0 },
    truncated: { examples: 0, tokens: 0 },
  };

  constructor(capacity: number) {
    this.#example = new Int32Array(capacity);
    this.#start = new Int32Array(capacity);
    this.#length = new Int32Array(capacity);
  }

  add(example: number, start: number, length: number): void {
    if (this.#count === this.#example.length) this.#grow();
    this.#example[this.#count] = example;
    this.#start[this.#count] = start;
    this.#length[this.#count] = length;
    this.#count++;
    this.#tokens += length;
  }

  drop(reason: 'overlong' | 'nothingToLearn', tokens: number): void {
    this.#losses.dropped[reason]++;
    this.#losses.dropped.tokens += tokens;
  }

  truncate(example: number, length: number, budget: number): void {
    this.add(example, 0, budget);
    this.#losses.truncated.examples++;
    this.#losses.truncated.tokens += length - budget;
  }

  // A last piece of one token would have nothing to predict, and alone in its step would stop a run: the piece
  // before it gives it one of its own. (A budget of 2 cannot spare one.)
  split(example: number, length: number, budget: number): void {
    for (let start = 0; start < length;) {
      const left = length - start;
      const take = left === budget + 1 && budget > 2 ? budget - 1 : Math.min(budget, left);
      this.add(example, start, take);
      start += take;
    }
  }

  finish(): Pieces {
    return {
      example: this.#example.subarray(0, this.#count),
      start: this.#start.subarray(0, this.#count),
      length: this.#length.subarray(0, this.#count),
      tokens: this.#tokens,
      ...this.#losses,
    };
  }

  #grow(): void {
    const enlarge = (old: Int32Array) => {
      const larger = new Int32Array(Math.max(16, old.length * 2));
      larger.set(old);
      return larger;
    };
    this.#example = enlarge(this.#example);
    this.#start = enlarge(this.#start);
    this.#length = enlarge(this.#length);
  }
}
