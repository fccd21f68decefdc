/** What the import noticed, in words: a heading for each of its codes, and what it means for training. */
const words: Record<string, readonly [string, string]> = {
  duplicateRow: ['Duplicates', 'the rendered text of an earlier example, character for character; kept'],
  nearDuplicateRow: ['Near duplicates', 'the same but for case, punctuation and white space; kept'],
  wrongExtension: [
    'Names that mislead',
    'files whose content is of another format than their name says; read as what they are',
  ],
  specialTokenText: [
    'Special tokens in the text',
    'content that spells a special token is tokenised as that token',
  ],
  jsonInCell: ['JSON in cells', 'text cells that hold JSON were read as JSON'],
  loneSurrogate: ['Broken characters', 'lone surrogates were replaced by U+FFFD'],
  nullContentEmptied: ['Content that is null', 'messages whose content is null were read as empty'],
  roleMapped: ['Roles by another name', 'human, gpt, bot and their like were read as user and assistant'],
  textPartsJoined: ['Content in parts', 'lists of text parts were joined into one text'],
  toolArgumentsParsed: ['Tool arguments as text', 'arguments given as JSON text were parsed'],
  nullsPruned: ['Empty fields', 'fields that only the file format had added were left out'],
};

export function describeWarning(code: string): { title: string; meaning: string } {
  const [title, meaning] = words[code] ?? [
    code
      .replace(/([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`)
      .replace(/^./, (letter) => letter.toUpperCase()),
    '',
  ];
  return { title, meaning };
}
