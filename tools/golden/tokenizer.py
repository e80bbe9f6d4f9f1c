#!/usr/bin/env python3
"""Records what Hugging Face tokenizers computes with the tokenizer that Carnot trained, for tests/golden/tokenizer/.

Run from the repository root with:  pip install tokenizers==0.23.3
    python3 tools/golden/tokenizer.py

trained.json is the tokenizer.json that the test HuggingFace.LoadsWhatIsTrained trains (when it fails it leaves the
new one in the build folder). expected.json is a list of variants: a JSON merge patch for trained.json, and texts with
their token ids; lacking_bytes.json is another, of files whose vocabulary has not every byte.

added_tokens.json has, for trained.json and the two SentencePiece files of tokenizer_corpus.py and for each combination
of an added token's flags, the token ids of FLAG_TEXTS and what they decode to; and what random token ids decode to.
"""

import copy
import itertools
import json
import pathlib
import random

from tokenizers import Tokenizer

FOLDER = pathlib.Path("tests/golden/tokenizer")

SPLIT_GPT2 = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
NO_REGEX = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}


def token(number, content, **flags):
    base = dict(id=number, content=content, single_word=False, lstrip=False, rstrip=False, normalized=False,
                special=False)
    return dict(base, **flags)


VARIANTS = {
    "as trained": {},
    "merges decide": {"model": {"ignore_merges": False}},
    "no normaliser": {"normalizer": None},
    "GPT-2 pattern": {"pre_tokenizer": dict(SPLIT_GPT2, pretokenizers=None)},
    "GPT-2 pattern, blank before": {"pre_tokenizer": dict(SPLIT_GPT2, pretokenizers=None, add_prefix_space=True)},
    "digits together": {"pre_tokenizer": {
        "type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": False}, NO_REGEX]}},
    "digits singly": {"pre_tokenizer": {
        "type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, SPLIT_GPT2]}},
    "literal split": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"String": ". "}, "behavior": "Isolated", "invert": False}, NO_REGEX]}},
    "added tokens with flags": {"added_tokens": [
        token(0, "<|im_start|>", special=True, rstrip=True), token(1, "<|im_end|>", special=True, lstrip=True),
        token(2, "<think>", lstrip=True, rstrip=True), token(3, "</think>", single_word=True),
        token(4, "<answer>", normalized=True), token(5, "</answer>", normalized=True, single_word=True),
        token(6, "\\boxed{")]},
}

# Patches of the model where single symbols are missing: those beyond ASCII that no merge needs, or all of them.
LACKING = {
    "nothing instead": ("beyond ASCII", {}),
    "nothing instead of most": ("all", {}),
    "nothing instead of most, merges decide": ("all", {"ignore_merges": False}),
    "unknown token": ("beyond ASCII", {"unk_token": "<answer>"}),
    "unknown token, fused": ("all", {"unk_token": "<answer>", "fuse_unk": True}),
    "unknown token for each": ("all", {"unk_token": "<answer>", "fuse_unk": False, "ignore_merges": False}),
    "unknown token that merges": ("all", {"unk_token": "e", "fuse_unk": True, "ignore_merges": False}),
}

WORDS = ["Where", "was", "Marta", "Quell", "Oslo", "Nowhere", "born", "in", "In", "Bergen", "don't", "I'LL", "'s", "2024",
         "3.14", "\u00bd", "\u0663", "caf\u00e9", "cafe\u0301", "\u041d\u0435\u0449\u043e", "\u4f60\u597d", "\u1112\u1161\u11ab",
         "\ud55c\uad6d", "\U0001f999", "\n", "\n\n", "\r\n", "\t", "...", "?!", "(", "_", "a_b", "\u00a0", "\u2028", "\u180e",
         "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<answer>", "</answer>", "\\boxed{", "<", ">", "</"]
RARE = ["\x00", "\x04", "\x16\x1d", "a\x04s", "e\x13r", "\U00040000", "Oslo\x04", "\x7f\x7f"]

FLAGS = ["single_word", "lstrip", "rstrip", "normalized"]
# No two of the same normalised form: which of them Hugging Face finds changes from process to process.
FLAGGED = ["<b>", "don't", "cafe\u0301", "\u00e9t\u00e9", "std::", "\n"]
FLAG_TEXTS = ["<b>", "a  <b>\t \u3000<b> b", "1<b>2<b><b>_", "xdon't don't_ don't",
              "\u200ddon't \u24b6don't don't\u0301", " caf\u00e9 cafe\u0301s",
              "\u00e9t\u00e9s e\u0301te\u0301 ", "std::std::vector",
              "\u2581std:: \u2581std::\u2581", "\n\n \n<b> \n"]



def texts(number, generator, words=WORDS):
    for _ in range(number):
        parts = [generator.choice(words) + generator.choice(["", " ", "  "]) for _ in range(generator.randint(1, 14))]
        yield "".join(parts)


def merge_patch(target, patch):
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def lacking_patch(trained, which, model):
    merged = set("".join("".join(merge) for merge in trained["model"]["merges"]))
    symbols = [one for one in trained["model"]["vocab"] if len(one) == 1 and one not in merged]
    chosen = [one for one in symbols if which == "all" or not "!" <= one <= "~"]
    return {"model": dict(model, vocab={one: None for one in chosen})}


def record(variants, trained, generator, number, words, path):
    recorded = []
    for name, patch in variants.items():
        tokenizer = Tokenizer.from_str(json.dumps(merge_patch(copy.deepcopy(trained), patch)))
        cases = [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids}
                 for text in texts(number, generator, words)]
        recorded.append({"name": name, "patch": patch, "cases": cases})
    lines = ",\n".join(
        json.dumps({"name": v["name"], "patch": v["patch"]})[:-1] + ', "cases": [\n  '
        + ",\n  ".join(json.dumps(case) for case in v["cases"]) + "]}" for v in recorded)
    (FOLDER / path).write_text("[" + lines + "]\n", encoding="utf-8")


def flagged(base, flags):
    file = copy.deepcopy(base)
    number = max(file["model"]["vocab"].values())
    contents = [content for content in FLAGGED if content not in file["model"]["vocab"]]
    file["added_tokens"] += [token(number + i, content, **flags) for i, content in enumerate(contents, 1)]
    tokenizer = Tokenizer.from_str(json.dumps(file))
    assert all(tokenizer.token_to_id(one["content"]) == one["id"] for one in file["added_tokens"])
    return tokenizer, file["added_tokens"]


def added_token_cases(generator):
    for name in ("trained", "sentence_piece", "metaspace"):
        base = json.loads((FOLDER / (name + ".json")).read_text(encoding="utf-8"))
        for values in itertools.product([False, True], repeat=len(FLAGS)):
            flags = dict(zip(FLAGS, values))
            tokenizer, added = flagged(base, flags)
            ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in FLAG_TEXTS]
            ids += [[generator.randrange(tokenizer.get_vocab_size()) for _ in range(12)] for _ in range(2)]
            yield {"file": name, "added_tokens": added, "ids": ids,
                   "decoded": [tokenizer.decode(one, skip_special_tokens=False) for one in ids]}


def main():
    trained = json.loads((FOLDER / "trained.json").read_text(encoding="utf-8"))
    generator = random.Random(1)
    record(VARIANTS, trained, generator, 40, WORDS, "expected.json")
    lacking = {name: lacking_patch(trained, *one) for name, one in LACKING.items()}
    record(lacking, trained, random.Random(2), 20, WORDS + RARE, "lacking_bytes.json")
    flag_lines = ",\n  ".join(json.dumps(one) for one in added_token_cases(generator))
    (FOLDER / "added_tokens.json").write_text(
        '{"texts": ' + json.dumps(FLAG_TEXTS) + ',\n "cases": [\n  ' + flag_lines + "]}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
