"""Made-up tokenizers of every kind, and what the `tokenizers` library makes of texts by them: one JSON object a line, a
tokenizer.json and texts with their ids and offsets (code points). Run by fuzzTokenizers.ts. Arguments: seed, count.
"""

import json
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CORPUS = [
    "The quick brown fox doesn't jump over 42 lazy dogs, it's said.", "def f(x):\n\treturn {'a': x + 1}  # naïve Straße",
    "Grüße aus Köln — ½ of it is ﬁne…", "привет мир, שלום עולם, 你好，世界。カタカナ 안녕하세요", "<b>bold</b>   spaces\r\n\n\nlines",
    "a\u0301 e\u0301 İstanbul ΣΑΣ 😀👩‍👩‍👧 ² ⅷ ١٢٣ \u00a0nbsp\u3000wide", "user: ask\nassistant: tell </s> <|im_end|>",
]
BITS = [
    "the", " The", "Don", "'s", "'LL", "naïve", "Straße", "привет", "你好世界", "カ", "안녕", " ", "  ", "\n", "\r\n", "\n\n ", "\t", "\u00a0", "\u3000",
    "1", "42", "½", "²", "ⅷ", "ﬁ", "…", "—", "\"", "(", "{\"a\":", "😀", "👩‍👩‍👧", "a\u0301", "é", "e\u0301", "İ", "ΣΑΣ", "\u212b", "\u1e9b\u0323",
    "<tok>", "<tok>x", "<T>", " <T> ", "<word>", "xword", "word", "<|im_end|>", "</s>", "<s>", "_", "▁", "▁▁", "##s", "Ġ", "\u200b", "ﷺ", "x" * 70,
]
SPLITS = [r"\d", r"\s+", r"[^\s]+", r" ?\p{L}+", r"\p{N}{1,3}", r"[\r\n]+"]
BEHAVIOURS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]


def normalizer(rng):
    one = lambda: rng.choice([
        normalizers.NFC(), normalizers.NFKC(), normalizers.NFD(), normalizers.NFKD(), normalizers.Lowercase(), normalizers.Strip(),
        normalizers.StripAccents(), normalizers.BertNormalizer(lowercase=rng.random() < 0.5), normalizers.Replace("e", "ee"),
        normalizers.Replace(Regex(" {2,}"), " "), normalizers.Prepend("▁"), normalizers.Nmt(),
    ])
    return rng.choice([None, normalizers.NFC(), normalizers.NFKC(), one(), normalizers.Sequence([one(), one()]),
                       normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])])


def pre_tokenizer(rng):
    split = lambda: pre_tokenizers.Split(Regex(rng.choice(SPLITS)), rng.choice(BEHAVIOURS), invert=rng.random() < 0.3)
    one = lambda: rng.choice([
        pre_tokenizers.Whitespace(), pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(individual_digits=rng.random() < 0.5),
        pre_tokenizers.Punctuation(rng.choice(BEHAVIOURS)), pre_tokenizers.BertPreTokenizer(), pre_tokenizers.UnicodeScripts(), split(), split(),
        pre_tokenizers.Metaspace(prepend_scheme=rng.choice(["always", "first", "never"]), split=rng.random() < 0.6),
    ])
    byte_level = lambda: pre_tokenizers.ByteLevel(add_prefix_space=rng.random() < 0.4, use_regex=rng.random() < 0.6)
    return rng.choice([None, one(), byte_level(), byte_level(), pre_tokenizers.Sequence([one(), byte_level()]),
                       pre_tokenizers.Sequence([split(), byte_level()]), pre_tokenizers.Sequence([one(), one()])])


def model(rng):
    kind = rng.choice(["bpe", "bpe", "bpe", "fallback", "unigram", "wordpiece", "wordlevel"])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    if kind == "bpe":
        return models.BPE(ignore_merges=rng.random() < 0.3), trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet, show_progress=False)
    if kind == "fallback":
        bytes_ = [f"<0x{n:02X}>" for n in range(256)]
        return (models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=rng.random() < 0.5),
                trainers.BpeTrainer(vocab_size=600, special_tokens=["<unk>"] + bytes_, show_progress=False))
    if kind == "unigram":
        return models.Unigram(), trainers.UnigramTrainer(vocab_size=200, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False)
    if kind == "wordpiece":
        return models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(vocab_size=400, special_tokens=["[UNK]"], show_progress=False)
    return models.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(special_tokens=["<unk>"], show_progress=False)


def added(rng):
    tokens = [AddedToken(text, lstrip=rng.random() < 0.3, rstrip=rng.random() < 0.3, single_word=rng.random() < 0.3,
                         normalized=rng.random() < 0.5, special=rng.random() < 0.5)
              for text in rng.sample(["<tok>", "<T>", "word", "<|im_end|>", "  ", "é", "naïve"], rng.randrange(4))]
    # A plain file has only tokens of the plainest kind.
    return [AddedToken(t.content, normalized=False, special=True) for t in tokens] if rng.random() < 0.4 else tokens


def made_up(rng):
    kind, trainer = model(rng)
    tokenizer = Tokenizer(kind)
    if (found := normalizer(rng)) is not None: tokenizer.normalizer = found
    if (found := pre_tokenizer(rng)) is not None: tokenizer.pre_tokenizer = found
    tokenizer.train_from_iterator(CORPUS, trainer)
    for token in added(rng):
        tokenizer.add_special_tokens([token]) if token.special else tokenizer.add_tokens([token])
    if rng.random() < 0.3: tokenizer.post_processor = processors.ByteLevel(trim_offsets=rng.random() < 0.5)
    return tokenizer.to_str()


def main():
    rng = random.Random(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        try:
            written = made_up(rng)
        except Exception as error:  # a combination that cannot be trained
            print(f"passed over: {error}", file=sys.stderr)
            continue
        tokenizer = Tokenizer.from_str(written.replace('"trim_offsets":true', '"trim_offsets":false'))
        texts = CORPUS + ["".join(rng.choice(BITS) for _ in range(rng.randrange(1, 20))) for _ in range(40)]
        cases = []
        for text in texts:
            found = tokenizer.encode(text, add_special_tokens=False)
            cases.append({"text": text, "ids": found.ids, "offsets": found.offsets})
        print(json.dumps({"tokenizer": written, "cases": cases}))


main()
