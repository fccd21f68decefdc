/** Reads the text that a template itself prints around a turn: headers and end-of-turn tokens of any family. */

const ROLE_NAME = /assistant|chatbot|model|gpt|bot|ai/gi;
const END_MARKER =
  /<\/s>|<[|｜]?(?:im_end|eot|eot_id|eom|eom_id|eos|end|endoftext|return|call|stop|end_of_\w+|end▁of▁\w+|endof\w*|\w*_end_?\w*|\w*end_of_turn\w*)[|｜]?>|\[\|?(?:endofturn|eos|end)\|?\]|\[e~\[/giy;
const NO_END_MARKER = /header|role|think|tool|message|start/i;
const MARKER = /<[^<>\s]*>|\[[^[\]\s]*\]/y;
/** A marker right behind a role name that opens what the assistant says, not what closes its header. */
const OPENS_SPEECH = /think|reason|tool|channel|function|response/i;
const NEWLINES = /[\r\n]*/y;

/** Length of the end-of-turn or end-of-sequence marker at `at`, 0 where there is none. */
export function endMarkerLength(text: string, at: number, eosToken: string): number {
  if (eosToken !== '' && text.startsWith(eosToken, at)) return eosToken.length;
  END_MARKER.lastIndex = at;
  const marker = END_MARKER.exec(text)?.[0];
  return marker === undefined || NO_END_MARKER.test(marker) ? 0 : marker.length;
}

/**
 * Length of the header at the start of an assistant's turn: through the newlines directly after the role's name
 * or its closing marker.
 * `lead` is what the template prints before the assistant's first word; `roleRange` is where the message's own
 * role stands in it, if it does; `promptText` ends with the template's generation prompt.
 */
export function headerLength(
  lead: string,
  roleRange: readonly [number, number] | undefined,
  promptText: string | null,
  eosToken: string,
): number {
  const role = roleRange ?? findRole(lead);
  if (!role) return promptOverlap(lead, promptText) || labelLength(lead, eosToken);
  let end = afterRole(lead, role, promptText, eosToken);
  // Kimi's header names the role twice: <|im_assistant|>assistant<|im_middle|>.
  const again = findRole(lead.slice(end));
  if (again?.[0] === 0) end = afterRole(lead, [end, end + again[1]], promptText, eosToken);
  return matchEnd(NEWLINES, lead, end);
}

/** The last header in a stretch of template text that runs into an assistant's first word: where it ends, or -1. */
export function lastHeaderEnd(text: string, promptText: string | null, eosToken: string): number {
  let last = -1;
  for (const match of text.matchAll(ROLE_NAME)) {
    if (!isWholeWord(text, match.index, match.index + match[0].length)) continue;
    const end = afterRole(text, [match.index, match.index + match[0].length], promptText, eosToken);
    last = matchEnd(NEWLINES, text, end);
  }
  return last;
}

/** The role's name in the first line of a header: nothing but markers and blanks stands before it. */
function findRole(lead: string): readonly [number, number] | undefined {
  for (const match of lead.matchAll(ROLE_NAME)) {
    const start = match.index;
    const end = start + match[0].length;
    if (!isWholeWord(lead, start, end)) continue;
    const before = lead.slice(0, start).trimStart();
    if (before.includes('\n') || before.length > 80) return undefined;
    return [start, end];
  }
  return undefined;
}

function isWholeWord(text: string, start: number, end: number): boolean {
  return !/[\p{L}\d]/u.test(text[start - 1] ?? '') && !/[\p{L}\d]/u.test(text[end] ?? '');
}

function afterRole(
  text: string,
  [start, end]: readonly [number, number],
  promptText: string | null,
  eosToken: string,
): number {
  const openedBy = Math.max(text.lastIndexOf('<', start), text.lastIndexOf('[', start));
  const isInMarker = openedBy !== -1 && !/[>\]]/.test(text.slice(openedBy, start));
  if (isInMarker) {
    const close = text.slice(end).search(/[>\]]/);
    return close === -1 ? end : end + close + 1;
  }
  if (text[end] === ':') return end + 1;
  MARKER.lastIndex = end;
  const marker = MARKER.exec(text)?.[0];
  if (marker === undefined || endMarkerLength(text, end, eosToken) > 0) return end;
  const markerEnd = end + marker.length;
  // The generation prompt settles whether the marker closes the header or is the model's to say.
  if (promptText?.includes(text.slice(openedBy === -1 ? start : openedBy, end)) === true) {
    return promptText.includes(text.slice(openedBy === -1 ? start : openedBy, markerEnd)) ? markerEnd : end;
  }
  return OPENS_SPEECH.test(marker) ? end : markerEnd;
}

/** How much of `lead` the generation prompt ends with, short of a block of reasoning that it opens. */
function promptOverlap(lead: string, promptText: string | null): number {
  if (promptText === null) return 0;
  for (let size = Math.min(lead.length, promptText.length); size > 0; size--) {
    if (!promptText.endsWith(lead.slice(0, size))) continue;
    const thinking = lead.slice(0, size).search(/<think|\[THINK/i);
    return thinking === -1 ? size : thinking;
  }
  return 0;
}

/** A line of its own with a colon (`### Response:`, `A:`), or one marker (`<|a|>`): all that the template prints. */
const LABEL = /^\s*(?:#+ *)?\p{L}[\p{L}\d _-]{0,40}:(?=\s*$)|^\s*(?:<[^<>\s]*>|\[[^[\]\s]*\])(?=\s*$)/u;

/** A header without a role's name, where the template has no generation prompt to tell it by. */
function labelLength(lead: string, eosToken: string): number {
  const label = LABEL.exec(lead)?.[0];
  if (label === undefined || OPENS_SPEECH.test(label))
    return label?.endsWith(':') === true ? matchEnd(NEWLINES, lead, label.length) : 0;
  const start = label.length - label.trimStart().length;
  return endMarkerLength(lead, start, eosToken) > 0 ? 0 : matchEnd(NEWLINES, lead, label.length);
}

function matchEnd(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return at + (pattern.exec(text)?.[0].length ?? 0);
}
