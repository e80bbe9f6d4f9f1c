#!/usr/bin/env python3
"""Records what Hugging Face tokenizers computes with the tokenizer that Carnot trained, for tests/golden/tokenizer/.

Run from the repository root with:  pip install tokenizers==0.23.3
    python3 tools/golden/tokenizer.py

trained.json is the tokenizer.json that the test HuggingFace.LoadsWhatIsTrained trains (when it fails it leaves the
new one in the build folder). expected.json is a list of variants: a JSON merge patch for trained.json, and texts with
their token ids.
"""

import copy
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

WORDS = ["Where", "was", "Marta", "Quell", "Oslo", "Nowhere", "born", "in", "In", "Bergen", "don't", "I'LL", "'s", "2024",
         "3.14", "\u00bd", "\u0663", "caf\u00e9", "cafe\u0301", "\u041d\u0435\u0449\u043e", "\u4f60\u597d", "\u1112\u1161\u11ab",
         "\ud55c\uad6d", "\U0001f999", "\n", "\n\n", "\r\n", "\t", "...", "?!", "(", "_", "a_b", "\u00a0", "\u2028", "\u180e",
         "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<answer>", "</answer>", "\\boxed{", "<", ">", "</"]


def texts(number, generator):
    for _ in range(number):
        parts = [generator.choice(WORDS) + generator.choice(["", " ", "  "]) for _ in range(generator.randint(1, 14))]
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


def main():
    trained = json.loads((FOLDER / "trained.json").read_text(encoding="utf-8"))
    generator = random.Random(1)
    recorded = []
    for name, patch in VARIANTS.items():
        tokenizer = Tokenizer.from_str(json.dumps(merge_patch(copy.deepcopy(trained), patch)))
        cases = [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids}
                 for text in texts(40, generator)]
        recorded.append({"name": name, "patch": patch, "cases": cases})
    lines = ",\n".join(
        json.dumps({"name": v["name"], "patch": v["patch"]})[:-1] + ', "cases": [\n  '
        + ",\n  ".join(json.dumps(case) for case in v["cases"]) + "]}" for v in recorded)
    (FOLDER / "expected.json").write_text("[" + lines + "]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
