/** The syntax tree of a template. Every node keeps its line for errors. */
import type { Value } from './values.ts';

export interface CallArguments {
  readonly positional: readonly Expression[];
  readonly named: readonly (readonly [name: string, value: Expression])[];
  readonly spread: Expression | undefined;
  readonly spreadNamed: Expression | undefined;
}

export type BinaryOperator = '+' | '-' | '*' | '/' | '//' | '%' | '**';
export type CompareOperator = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | 'not in';

export type Expression = { readonly line: number } & (
  | { readonly type: 'constant'; readonly value: Value }
  | { readonly type: 'name'; readonly name: string }
  | { readonly type: 'list' | 'tuple'; readonly items: readonly Expression[] }
  | { readonly type: 'dict'; readonly entries: readonly (readonly [Expression, Expression])[] }
  | {
      readonly type: 'condition';
      readonly test: Expression;
      readonly then: Expression;
      readonly otherwise: Expression | undefined;
    }
  | { readonly type: 'and' | 'or'; readonly left: Expression; readonly right: Expression }
  | { readonly type: 'not' | 'negative' | 'positive'; readonly operand: Expression }
  | {
      readonly type: 'binary';
      readonly operator: BinaryOperator;
      readonly left: Expression;
      readonly right: Expression;
    }
  | { readonly type: 'concat'; readonly items: readonly Expression[] }
  | {
      readonly type: 'compare';
      readonly first: Expression;
      readonly rest: readonly (readonly [CompareOperator, Expression])[];
    }
  | { readonly type: 'attribute'; readonly object: Expression; readonly name: string }
  | { readonly type: 'item'; readonly object: Expression; readonly key: Expression }
  | {
      readonly type: 'slice';
      readonly start: Expression | undefined;
      readonly stop: Expression | undefined;
      readonly step: Expression | undefined;
    }
  | { readonly type: 'call'; readonly callee: Expression; readonly arguments: CallArguments }
  | {
      readonly type: 'filter';
      readonly operand: Expression | undefined;
      readonly name: string;
      readonly arguments: CallArguments;
    }
  | {
      readonly type: 'test';
      readonly operand: Expression;
      readonly name: string;
      readonly arguments: CallArguments;
    }
);

export type Target =
  | { readonly type: 'name'; readonly name: string }
  | { readonly type: 'namespace'; readonly name: string; readonly attribute: string }
  | { readonly type: 'tuple'; readonly items: readonly Target[] };

export interface Signature {
  readonly names: readonly string[];
  /** Defaults of the last names. */
  readonly defaults: readonly Expression[];
}

export type Statement = { readonly line: number } & (
  | { readonly type: 'data'; readonly text: string }
  | { readonly type: 'print'; readonly value: Expression }
  | {
      readonly type: 'if';
      readonly branches: readonly (readonly [Expression, Body])[];
      readonly otherwise: Body;
    }
  | {
      readonly type: 'for';
      readonly target: Target;
      readonly iterable: Expression;
      readonly test: Expression | undefined;
      readonly isRecursive: boolean;
      readonly body: Body;
      readonly otherwise: Body;
    }
  | { readonly type: 'set'; readonly target: Target; readonly value: Expression }
  | {
      readonly type: 'setBlock';
      readonly target: Target;
      readonly filter: Expression | undefined;
      readonly body: Body;
    }
  | {
      readonly type: 'with';
      readonly bindings: readonly (readonly [Target, Expression])[];
      readonly body: Body;
    }
  | { readonly type: 'macro'; readonly name: string; readonly signature: Signature; readonly body: Body }
  | {
      readonly type: 'callBlock';
      readonly signature: Signature;
      readonly call: Expression;
      readonly body: Body;
    }
  | { readonly type: 'filterBlock'; readonly filter: Expression; readonly body: Body }
  | { readonly type: 'generation' | 'block'; readonly body: Body }
  | { readonly type: 'break' | 'continue' }
);

export type Body = readonly Statement[];
