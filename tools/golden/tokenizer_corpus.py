#!/usr/bin/env python3
"""Records what Hugging Face tokenizers computes on all of GSM8K, on code and on random text, for
tests/golden/tokenizer/.

Run from the repository root with:  pip install tokenizers==0.23.3
    python3 tools/golden/tokenizer_corpus.py "$CARNOT_DATA"     # the published data of docs/data.md

Tokenizers: Qwen2's, from the data folder; qwen2_small, the same files with a small vocabulary trained here on random
text, with vectors.jsonl; and small ones trained here on part of GSM8K, whose tokenizer.json is written next to the
recording, with the pipelines of
  llama3          Llama 3's pattern, ignore_merges
  tekken          Mistral's Tekken pattern
  o200k           that of o200k_base, as in Phi-4-mini and gpt-oss
  digits          single digits, GPT-2's pattern, added tokens with every flag
  sentence_piece  SentencePiece's BPE as Llama 2 has it: Prepend and Replace, byte_fallback
  metaspace       the same with a Metaspace step, prepend_scheme "first"; with merges from word to word

corpus.json holds, per tokenizer and corpus, a hash for each batch of 64 texts: FNV-1a over the little-endian 32-bit
token ids of each text, then 0xFFFFFFFF, then the bytes of the decoded text and a zero byte.
random_lines() is duplicated in carnot/core/text/tokenizer_corpus_test.cpp.
"""

import json
import lzma
import pathlib
import struct
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

OUT = pathlib.Path("tests/golden/tokenizer")
BATCH = 64
RANDOM_LINES = 2048

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
          r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + ENDINGS
         + r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + ENDINGS
         + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")

# First and last code point of stretches that every Unicode version since 6.0 has assigned.
STRETCHES = [(0x61, 0x7A), (0x41, 0x5A), (0x30, 0x39), (0x20, 0x20), (0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60),
             (0x09, 0x0D), (0x00, 0x1F), (0xC0, 0x17F), (0x300, 0x36F), (0x391, 0x3A1), (0x3B1, 0x3C9), (0x410, 0x44F),
             (0x5D0, 0x5EA), (0x621, 0x64A), (0x660, 0x669), (0x905, 0x939), (0xE01, 0xE30), (0x1100, 0x1112),
             (0x1161, 0x1175), (0xAC00, 0xD7A3), (0x4E00, 0x9FA5), (0x3041, 0x3096), (0x2000, 0x200F), (0x2028, 0x202F),
             (0x2070, 0x2071), (0x2150, 0x2182), (0x2190, 0x21FF), (0x2581, 0x2581), (0x3000, 0x3003), (0xFE0E, 0xFE0F),
             (0xFF01, 0xFF5E), (0x1D400, 0x1D454), (0x1F1E6, 0x1F1FF), (0x1F3FB, 0x1F3FF), (0x1F600, 0x1F640)]
WORDS = ["std::vector<int> a{1, 2};", "def f(x):\n\treturn x**2", "\t\tif (a != b) {\n", "0xFF", "// don't", "'''",
         "\\n", "I'LL we've", "1234567.89", "<|end|>", "<s>", "</s>", "[INST]", "<b>", " <b> ", "x<b>y", "  \n  \n",
         "\r\n\r\n", "caf\u00e9", "cafe\u0301", "\u1112\u1161\u11ab", "\U0001f469\u200d\U0001f4bb", "e\u0323\u0302", "$5.00",
         "https://a.b/c?d=e&f", "\u2581\u2581", "   ", "...", "#include <map>"]


def random_lines(count):
    """The same texts in every language: a 64-bit linear congruential generator, its upper 31 bits."""
    state = 1

    def below(bound):
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 33) % bound

    for _ in range(count):
        line = ""
        for _ in range(1 + below(24)):
            if below(3) == 0:
                line += WORDS[below(len(WORDS))]
                continue
            first, last = STRETCHES[below(len(STRETCHES))]
            for _ in range(1 + below(5)):
                line += chr(first + below(last - first + 1))
        yield line


def gsm8k(data):
    for split in ("train", "test"):
        with lzma.open(data / "gsm8k" / f"{split}.jsonl.xz", "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                yield row["question"] + "\n" + row["answer"]


def code(data):
    """Patches to Python projects, and the reports that they address."""
    with open(data / "swe" / "instances.jsonl", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            row = json.loads(line)
            yield from (row["patch"], row["test_patch"], row["problem_statement"])


# A text of each kind that splits, normalises or merges in its own way; vectors.jsonl has their token ids.
VECTORS = ["", " ", "   ", "\t", "\n\n", "\t\n", " Two words", "Two words", " Two Words!", "we'll WE'LL don't I'M",
           "7", "1066", "3.14159", "for (int i = 0; i < n; ++i) {\n    sum += x[i];\n}\n", "  indented\n  twice",
           "caf\u00e9 cafe\u0301 \u00bd", "\u043d\u0435\u0447\u0442\u043e", "\u4f60\u597d\uff0c\u4e16\u754c",
           "\u0928\u092e\u0938\u094d\u0924\u0947", "\U0001f469\u200d\U0001f4bb \u2705", "\u05e9\u05dc\u05d5\u05dd",
           "<|im_start|>user\nWhich way?<|im_end|>\n", "<tool_call>\n{\"name\": \"north\"}\n</tool_call>"]
QWEN2_5_SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>",
                   "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>",
                   "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"]
QWEN2_5_OTHER = ["<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
                 "<|repo_name|>", "<|file_sep|>"]


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), behavior="isolated")


def byte_level():
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


SPECIAL = ["<s>", "</s>", "<|end|>", "[INST]"]
FLAGGED = [AddedToken("<b>", lstrip=True, rstrip=True, normalized=False), AddedToken("don't", single_word=True),
           AddedToken("caf\u00e9", normalized=True), AddedToken("std::", normalized=False, rstrip=True)]


def trained_bytes(texts, pre_tokenizer, normalizer=None, ignore_merges=False, added=()):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=SPECIAL, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens(list(added))
    return tokenizer


def sentence_piece(texts, metaspace):
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    # In the finished file a whole stretch of text is merged at once. The trainer counts words with the blanks before
    # them, as SentencePiece's does; for the other file lines, so that merges cross word boundaries.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always", split=False), split("\n")]
        + ([] if metaspace else [split("\u2581+[^\u2581]*")]))
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=2300, special_tokens=["<unk>", "<s>", "</s>"] + bytes_, show_progress=False, max_token_length=16))
    file = json.loads(tokenizer.to_str())
    file["added_tokens"] = [token for token in file["added_tokens"] if not token["content"].startswith("<0x")]
    tokenizer = Tokenizer.from_str(json.dumps(file))
    if metaspace:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="first", split=False)
    else:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
        file = json.loads(tokenizer.to_str())
        file["pre_tokenizer"] = None
        tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(content=" ", left=1, right=0)])
    return tokenizer


def write_qwen2_small(folder):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split(QWEN2), byte_level()])
    tokenizer.train_from_iterator(VECTORS * 20 + list(random_lines(500)), trainers.BpeTrainer(
        vocab_size=700, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    folder.mkdir(exist_ok=True)
    tokenizer.model.save(str(folder))
    added = [{"id": 700 + i, "content": content, "special": content in QWEN2_5_SPECIAL}
             for i, content in enumerate(QWEN2_5_SPECIAL + QWEN2_5_OTHER)]
    (folder / "tokenizer_description.json").write_text(
        json.dumps({"pre_tokenizer_regex": QWEN2, "added_tokens": added}, indent=1) + "\n", encoding="utf-8")
    tokenizer = in_qwen2s_files(folder)
    rows = [{"index": i, "text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids}
            for i, text in enumerate(VECTORS)]
    (folder / "vectors.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tokenizer


def text_of(path):
    if path.exists():
        return path.read_text(encoding="utf-8")
    return lzma.decompress(path.with_name(path.name + ".xz").read_bytes()).decode()


def in_qwen2s_files(folder):
    """vocab.json and merges.txt, each also as .xz, and tokenizer_description.json."""
    merges = [tuple(line.split(" ")) for line in text_of(folder / "merges.txt").rstrip("\n").split("\n")
              if not line.startswith("#version")]
    description = json.loads(text_of(folder / "tokenizer_description.json"))
    tokenizer = Tokenizer(models.BPE(vocab=json.loads(text_of(folder / "vocab.json")), merges=merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split(QWEN2), byte_level()])
    tokenizer.decoder = decoders.ByteLevel()
    added = description.get("added_tokens") or description["added_tokens_qwen2_5"]
    for token in sorted(added, key=lambda token: token["id"]):
        one = AddedToken(token["content"], special=token.get("special", False), normalized=False)
        (tokenizer.add_special_tokens if token.get("special") else tokenizer.add_tokens)([one])
        assert tokenizer.token_to_id(token["content"]) == token["id"], token
    return tokenizer


def qwen2(data):
    return in_qwen2s_files(data / "tokenizer" / "qwen2")


def fnv(data, value):
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return value


def hashes(tokenizer, texts):
    texts = list(texts)
    found = []
    for begin in range(0, len(texts), BATCH):
        value = 0xCBF29CE484222325
        for encoding in tokenizer.encode_batch(texts[begin:begin + BATCH], add_special_tokens=False):
            ids = encoding.ids
            value = fnv(struct.pack(f"<{len(ids) + 1}I", *ids, 0xFFFFFFFF), value)
            value = fnv(tokenizer.decode(ids, skip_special_tokens=False).encode() + b"\0", value)
        found.append(f"{value:016x}")
    return found


def main():
    data = pathlib.Path(sys.argv[1])
    problems = list(gsm8k(data))
    sample = problems[:1500] + list(random_lines(200))
    made = {
        "llama3": trained_bytes(sample, pre_tokenizers.Sequence([split(LLAMA3), byte_level()]), ignore_merges=True),
        "tekken": trained_bytes(sample, pre_tokenizers.Sequence([split(TEKKEN), byte_level()])),
        "o200k": trained_bytes(sample, pre_tokenizers.Sequence([split(O200K), byte_level()])),
        "digits": trained_bytes(sample, pre_tokenizers.Sequence([
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]), normalizers.NFC(), added=FLAGGED),
        "sentence_piece": sentence_piece(sample, metaspace=False),
        "metaspace": sentence_piece(sample, metaspace=True),
    }
    for name, tokenizer in made.items():
        (OUT / (name + ".json")).write_text(tokenizer.to_str(), encoding="utf-8")
    made["qwen2_small"] = write_qwen2_small(OUT / "qwen2_small")
    made["qwen2"] = qwen2(data)
    lines = []
    for name, tokenizer in made.items():
        lines.append(json.dumps({"name": name, "gsm8k": hashes(tokenizer, problems), "code": hashes(tokenizer, code(data)),
                                 "random": hashes(tokenizer, random_lines(RANDOM_LINES))}))
        print(name, tokenizer.get_vocab_size(), "tokens")
    (OUT / "corpus.json").write_text("[" + ",\n ".join(lines) + "]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
