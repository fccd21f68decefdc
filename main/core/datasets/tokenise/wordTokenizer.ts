import type { Tokenizer } from 'tokenizers';
import type { WordSplitter } from './wordSplitter.ts';

/** A word of some text and its tokens; empty until the library has told them. */
export interface Word {
  text: string;
  ids: readonly number[];
}

const maxWords = 1 << 18;
const maxWordChars = 48;
/** Once so many words are known, texts of mostly new ones (writing without spaces, say) are the library's, whole. */
const enoughWords = 1 << 14;
const maxNewShare = 0.4;

/** A text with a bit of everything, to see that words give what the library gives. */
const probe =
  "It's 2026:\tCAN'T we'll  go?\r\n\n  <b>x_1</b> \"né\" naïve Straße — ok…\n\n\n   İı ΑΒγ привет שלום 你好，世界。カタカナ 안녕 " +
  '😀👩‍👩‍👧 ½ ² ⅷ ١٢٣ \u00a0\u2028\u3000\u0085 a\u0301 /* {[(x+=1)]} */ \t \t#42,000.5%  ';

/**
 * Tokens of texts by looking words up: the library gives each word's tokens once. Words repeat so much that this is
 * ten times as fast as encoding every text, with the same result.
 */
export class WordTokenizer {
  private readonly tokenizer: Tokenizer;
  private readonly splitter: WordSplitter;
  private known = new Map<string, Word>();
  private unknown: Word[] = [];

  private constructor(tokenizer: Tokenizer, splitter: WordSplitter) {
    this.tokenizer = tokenizer;
    this.splitter = splitter;
  }

  /** @returns undefined where the words' tokens are not the whole text's after all */
  static async open(tokenizer: Tokenizer, splitter: WordSplitter): Promise<WordTokenizer | undefined> {
    const words = new WordTokenizer(tokenizer, splitter);
    const [found] = await words.words([probe.normalize('NFC')]);
    const whole = await tokenizer.encode(probe.normalize('NFC'), null, { addSpecialTokens: false });
    const ids = found?.flatMap((word) => word.ids);
    return ids?.join() === whole.getIds().join() ? words : undefined;
  }

  /**
   * The words of each text with their tokens, undefined where the library must encode the text itself. One call at a
   * time: words of a call that still runs have no tokens yet.
   */
  async words(texts: readonly string[]): Promise<(Word[] | undefined)[]> {
    if (this.known.size > maxWords) this.known = new Map();
    const found = texts.map((text) => this.look(text));
    const { unknown } = this;
    this.unknown = [];
    const encodings = await this.tokenizer.encodeBatch(
      unknown.map(({ text }) => text),
      { addSpecialTokens: false },
    );
    for (const [index, word] of unknown.entries()) word.ids = encodings[index]?.getIds() ?? [];
    return found;
  }

  private look(text: string): Word[] | undefined {
    const parts = this.splitter.split(text);
    if (parts === undefined) return undefined;
    const words: Word[] = [];
    const fresh: Word[] = [];
    let numNewChars = 0;
    for (const part of parts) {
      let word = this.known.get(part);
      if (word === undefined) {
        numNewChars += part.length;
        const isMostlyNew = this.known.size > enoughWords && numNewChars > maxNewShare * text.length;
        if (isMostlyNew || !this.splitter.standsAlone(part)) {
          for (const word of fresh) this.known.delete(word.text);
          return undefined;
        }
        word = { text: part, ids: [] };
        fresh.push(word);
        if (part.length <= maxWordChars) this.known.set(part, word);
      }
      words.push(word);
    }
    for (const word of fresh) this.unknown.push(word);
    return words;
  }
}
