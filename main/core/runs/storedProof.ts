import type { Preflight } from '../../contract/runs.ts';

type Proof = NonNullable<Preflight['isolation']>;

/**
 * An isolation proof as it is told today: the words of older versions counted examples from 0, ours count from 1, and
 * which examples a change reached stood in those words alone.
 */
export function currentProof(proof: Proof): Proof {
  if (proof.leaked !== undefined) return proof;
  const leaked = new Set<number>();
  for (const text of proof.failures) {
    for (const [, example] of text.matchAll(/(?:changed the \w+ of|reaches) example (\d+)/g))
      leaked.add(Number(example));
  }
  const fromOne = (text: string) =>
    text.replaceAll(/\bexample (\d+)/g, (_, example: string) => `example ${String(Number(example) + 1)}`);
  return {
    ...proof,
    leaked: [...leaked].sort((a, b) => a - b),
    failures: proof.failures.map(fromOne),
    message: fromOne(proof.message),
  };
}
