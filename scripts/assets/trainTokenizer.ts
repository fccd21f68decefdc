/**
 * Trains the bundled model's tokenizer, a byte-level BPE of 4,096 entries, and writes tokenizer.json,
 * tokenizer_config.json, special_tokens_map.json and generation_config.json into a model folder.
 *
 *   node scripts/assets/trainTokenizer.ts PRETRAINING.jsonl [MODEL-FOLDER]
 *
 * The `tokenizers` package trains 30,000 merges without asking and leaves out bytes that it has not seen. Its merges
 * come in the order in which they were found, so the first of them are the smaller vocabulary; ids are given anew,
 * beginning with all 256 bytes.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Tokenizer } from 'tokenizers';

const VOCABULARY = 4096;
const SPECIAL = [
  ...['<|endoftext|>', '<|im_start|>', '<|im_end|>', '<think>', '</think>'],
  ...['<tool_call>', '</tool_call>', '<tool_response>', '</tool_response>'],
];
// As in Qwen: contractions, words with the space before them, single digits, punctuation, white space.
const PATTERN =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
/** Lessons repeat themselves; this many of their lines teach all that they have. */
const ROWS = 3_000;

const assets = join(import.meta.dirname, '..', '..', 'assets');

interface Row {
  text?: string;
  messages?: { content: string; reasoning_content?: string }[];
}

/** One line of text per message or paragraph. */
function textOf(path: string, rows = Infinity): string {
  return readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Row)
    .filter(({ text }, i) => text !== undefined || i < rows)
    .flatMap(
      ({ text, messages = [] }) => text ?? messages.flatMap((m) => [m.reasoning_content ?? '', m.content]),
    )
    .join('\n');
}

function definition(vocab: Record<string, number>, merges: string[][]): object {
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false };
  const split = { type: 'Split', pattern: { Regex: PATTERN }, behavior: 'Isolated', invert: false };
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: SPECIAL.map((content, i) => ({
      ...{ id: VOCABULARY - SPECIAL.length + i, content, single_word: false, lstrip: false, rstrip: false },
      ...{ normalized: false, special: content.startsWith('<|') },
    })),
    normalizer: null,
    pre_tokenizer: { type: 'Sequence', pretokenizers: [split, byteLevel] },
    post_processor: null,
    decoder: byteLevel,
    model: {
      ...{
        type: 'BPE',
        dropout: null,
        unk_token: null,
        continuing_subword_prefix: '',
        end_of_word_suffix: '',
      },
      ...{ fuse_unk: false, byte_fallback: false, ignore_merges: false },
      ...{ vocab, merges },
    },
  };
}

/** The 256 characters that stand for bytes: printable ones for themselves, the others from U+0100 on. */
function byteAlphabet(): string[] {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte !== 173);
    return String.fromCodePoint(printable ? byte : next++);
  });
}

/** The merges in the order in which training found them. */
function findMerges(text: string): string[][] {
  const folder = mkdtempSync(join(tmpdir(), 'tokenizer-'));
  try {
    const [input, output] = [join(folder, 'text.txt'), join(folder, 'tokenizer.json')];
    writeFileSync(input, text);
    const tokenizer = Tokenizer.fromString(JSON.stringify({ ...definition({}, []), added_tokens: [] }));
    tokenizer.train([input]);
    tokenizer.save(output);
    const trained = JSON.parse(readFileSync(output, 'utf8')) as { model: { merges: (string | string[])[] } };
    return trained.model.merges.map((merge) => (typeof merge === 'string' ? merge.split(' ') : merge));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const [pretraining, folder = join(assets, 'models', 'workshop-3m')] = process.argv.slice(2);
if (pretraining === undefined) throw new Error('usage: trainTokenizer.ts PRETRAINING.jsonl [MODEL-FOLDER]');
const samples = textOf(join(assets, 'samples', 'chats.jsonl'));
const found = findMerges([textOf(pretraining, ROWS), samples, samples].join('\n'));
const entries = new Set(byteAlphabet());
const merges: string[][] = [];
for (const merge of found) {
  if (entries.size === VOCABULARY - SPECIAL.length) break;
  entries.add(merge.join(''));
  merges.push(merge);
}
const vocab = Object.fromEntries([...entries].map((entry, id) => [entry, id]));
const idOf = (token: string) => VOCABULARY - SPECIAL.length + SPECIAL.indexOf(token);
const write = (name: string, value: object) => {
  writeFileSync(join(folder, name), `${JSON.stringify(value, null, 1)}\n`);
};

mkdirSync(folder, { recursive: true });
const json = JSON.stringify(definition(vocab, merges));
Tokenizer.fromString(json);
writeFileSync(join(folder, 'tokenizer.json'), `${json}\n`);
const tokens = { bos_token: null, eos_token: '<|im_end|>', pad_token: '<|endoftext|>', unk_token: null };
write('tokenizer_config.json', {
  ...{ tokenizer_class: 'PreTrainedTokenizerFast', model_max_length: 4096, add_bos_token: false, ...tokens },
  ...{ clean_up_tokenization_spaces: false },
});
write('special_tokens_map.json', { eos_token: tokens.eos_token, pad_token: tokens.pad_token });
write('generation_config.json', {
  ...{ eos_token_id: [idOf('<|im_end|>'), idOf('<|endoftext|>')], pad_token_id: idOf('<|endoftext|>') },
  ...{ do_sample: true, temperature: 0.7, top_p: 0.9, max_new_tokens: 200 },
});
console.log(
  `${entries.size} entries and ${SPECIAL.length} special tokens from ${found.length} merges in ${folder}`,
);
