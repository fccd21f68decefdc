/** Which of a file's columns and roles are meant; saved with the dataset. */
export interface Mapping {
  /** From a name that Tessera knows (`messages`, `prompt`, `text`, …) to the file's own column. */
  columns: Record<string, string>;
  /** From a role as written to `system`, `user`, `assistant` or `tool`. */
  roles: Record<string, string>;
}

export const emptyMapping: Mapping = { columns: {}, roles: {} };

export const rowFormats = ['messages', 'sharegpt', 'alpaca', 'completion', 'text'] as const;
export type RowFormat = (typeof rowFormats)[number];

/** Roles that others write for the four. What is in neither list is refused by name, unless it is mapped. */
export const roleAliases: Readonly<Record<string, string>> = {
  human: 'user',
  prompter: 'user',
  gpt: 'assistant',
  chatgpt: 'assistant',
  bot: 'assistant',
  bard: 'assistant',
  model: 'assistant',
  ai: 'assistant',
  function: 'tool',
  function_response: 'tool',
  observation: 'tool',
  tool_response: 'tool',
};

export const templateRoles: ReadonlySet<string> = new Set([
  'system',
  'user',
  'assistant',
  'tool',
  'developer',
  'ipython',
]);
