/** Binds the arguments of a call to the parameters of a function written in Python. */
import { typeError } from './errors.ts';
import type { Kwargs, Value } from './values.ts';

/**
 * Arguments in the order of `names`; `undefined` where none was given.
 * The first `numRequired` have to be there. Throws Python's TypeErrors.
 */
export function bind(
  functionName: string,
  names: readonly string[],
  numRequired: number,
  args: readonly Value[],
  kwargs: Kwargs,
): (Value | undefined)[] {
  if (args.length > names.length) {
    throw typeError(`${functionName}() takes at most ${names.length} arguments (${args.length} given)`);
  }
  const bound: (Value | undefined)[] = names.map((_, i) => args[i]);
  for (const [name, value] of kwargs) {
    const at = names.indexOf(name);
    if (at === -1) throw typeError(`${functionName}() got an unexpected keyword argument '${name}'`);
    if (at < args.length) throw typeError(`${functionName}() got multiple values for argument '${name}'`);
    bound[at] = value;
  }
  for (let i = 0; i < numRequired; i++) {
    if (bound[i] === undefined)
      throw typeError(`${functionName}() missing a required argument: '${names[i] ?? ''}'`);
  }
  return bound;
}

export const NO_KWARGS: Kwargs = new Map();
