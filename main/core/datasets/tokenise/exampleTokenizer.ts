import type { JsEncoding, Tokenizer } from 'tokenizers';
import { TesseraError } from '../../../contract/errors.ts';
import type { ModelFolder } from '../modelFolder.ts';
import type { RenderedExample } from './renderExample.ts';
import { EncodedWhole, EncodedWords, type EncodedText } from './encodedText.ts';
import { readTokenizerFile, type TokenizerFile } from './tokenizerFile.ts';
import { WordTokenizer } from './wordTokenizer.ts';

export interface TokenisedExample {
  ids: Int32Array;
  /** 1 where the token is learned. */
  supervised: Uint8Array;
  /** Supervised tokens that a token before them predicts. */
  targets: number;
}

/** The model's tokenizer with the rules for what begins and ends an example. */
export class ExampleTokenizer {
  /** Texts of the special tokens, longest first. */
  readonly specialTexts: string[];
  private readonly tokenizer: Tokenizer;
  private readonly bosId: number | undefined;
  private readonly eosId: number | undefined;
  private readonly numBytes: Uint16Array | undefined;
  private readonly words: WordTokenizer | undefined;

  private constructor(
    { tokenizer, specialTexts, numBytes }: TokenizerFile,
    words: WordTokenizer | undefined,
    bosId: number | undefined,
    eosId: number | undefined,
  ) {
    this.tokenizer = tokenizer;
    this.specialTexts = specialTexts;
    this.numBytes = numBytes;
    this.words = words;
    this.bosId = bosId;
    this.eosId = eosId;
  }

  /** @throws {TesseraError} `badTokenizer` */
  static async open(model: ModelFolder): Promise<ExampleTokenizer> {
    try {
      const file = readTokenizerFile(model.tokenizerFile);
      const { tokenizer, splitter, numBytes } = file;
      const idOf = (name: string) => {
        const text = model.specialTokens[name];
        return text === undefined ? undefined : (tokenizer.tokenToId(text) ?? undefined);
      };
      const eosId = idOf('eos_token');
      // What the post-processor puts around nothing: its first token is a BOS, unless it is the closing one.
      const added = (await tokenizer.encode('', null, { addSpecialTokens: true })).getIds()[0];
      const byProcessor = added === eosId ? undefined : added;
      const bosId = model.addBos === undefined ? byProcessor : model.addBos ? idOf('bos_token') : undefined;
      const words = splitter && numBytes && (await WordTokenizer.open(tokenizer, splitter));
      return new ExampleTokenizer(file, words, bosId, eosId);
    } catch (error) {
      const hint = 'Copy the tokenizer.json that belongs to the model into its folder.';
      throw new TesseraError(
        'badTokenizer',
        `${model.tokenizerFile} cannot be used: ${(error as Error).message}`,
        hint,
      );
    }
  }

  /**
   * Encodes a batch; one call at a time. Chats begin as their template says; other texts get BOS as the tokenizer says.
   */
  async encode(examples: RenderedExample[]): Promise<TokenisedExample[]> {
    const encoded = await this.encodeTexts(examples.flatMap(({ pieces }) => pieces.map(({ text }) => text)));
    let at = 0;
    return examples.map((example) => {
      const parts = encoded.slice(at, (at += example.pieces.length));
      return this.assemble(example, parts);
    });
  }

  private async encodeTexts(texts: string[]): Promise<EncodedText[]> {
    const found = await this.words?.words(texts);
    const rest = found === undefined ? texts : texts.filter((_, index) => found[index] === undefined);
    const encodings = await this.tokenizer.encodeBatch(rest, { addSpecialTokens: false });
    let at = 0;
    return texts.map((_, index) => {
      const words = found?.[index];
      if (words !== undefined) return new EncodedWords(words, this.numBytes as Uint16Array);
      return new EncodedWhole(encodings[at++] as JsEncoding, this.numBytes);
    });
  }

  private assemble(example: RenderedExample, parts: EncodedText[]): TokenisedExample {
    const isChat = example.kind === 'chat';
    const { bosId, eosId } = this;
    const first = parts.find((part) => part.length > 0)?.first;
    const last = parts.findLast((part) => part.length > 0)?.last;
    const bos = !isChat && bosId !== undefined && first !== bosId ? [bosId] : [];
    const eos = !isChat && eosId !== undefined && last !== eosId ? [eosId] : [];
    const length = bos.length + parts.reduce((sum, part) => sum + part.length, 0) + eos.length;
    const ids = new Int32Array(length);
    const supervised = new Uint8Array(length);
    ids.set(bos);
    if (example.kind === 'text') supervised.fill(1, 0, bos.length);
    let at = bos.length;
    for (const [index, piece] of example.pieces.entries()) {
      const part = parts[index] as EncodedText;
      part.writeIds(ids, at);
      if (piece.supervised === 'all') supervised.fill(1, at, at + part.length);
      else if (piece.supervised !== 'none') part.mark(supervised, at, piece.text, piece.supervised);
      at += part.length;
    }
    ids.set(eos, at);
    supervised.fill(1, at);
    let targets = 0;
    for (let i = 1; i < length; i++) targets += supervised[i] as number;
    return { ids, supervised, targets };
  }
}
