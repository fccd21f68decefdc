import type { z } from 'zod';

const kinds: Readonly<Record<string, string>> = {
  number: 'a number',
  int: 'a whole number',
  string: 'text',
  boolean: 'true or false',
  array: 'a list',
  tuple: 'a list',
  object: 'keys with values',
  record: 'keys with values',
};

/** What is wrong with a field, as the rest of a sentence that begins with its name: `must be at least 2`. */
export function issueWords(issue: z.core.$ZodIssue | undefined): string {
  if (issue === undefined) return 'is not valid';
  switch (issue.code) {
    case 'custom':
    case 'invalid_format':
      return issue.message;
    case 'invalid_type':
      if (issue.message.endsWith('received undefined')) return 'is missing';
      return `must be ${kinds[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map(String).join(', ')}`;
    case 'too_small':
      if (issue.origin === 'string') return Number(issue.minimum) === 1 ? 'is empty' : 'is too short';
      if (issue.origin === 'array') return `needs ${String(issue.minimum)} entries`;
      return `must be ${issue.inclusive === false ? 'above' : 'at least'} ${String(issue.minimum)}`;
    case 'too_big':
      if (issue.origin === 'string') return `has more than ${String(issue.maximum)} characters`;
      if (issue.origin === 'array') return `has more than ${String(issue.maximum)} entries`;
      return `must be ${issue.inclusive === false ? 'below' : 'at most'} ${String(issue.maximum)}`;
    default:
      return `is not valid: ${issue.message}`;
  }
}
