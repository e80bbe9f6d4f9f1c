#!/usr/bin/env python3
"""Carnot's tokenizer and Hugging Face's on the same texts, one thread each, in one run.

    pip install tokenizers==0.23.3
    cmake --build build --target tokenizer_bench
    python3 bench/peers/tokenizer_speed.py "$CARNOT_DATA"     # the published data of docs/data.md

Texts: all of GSM8K, and this repository's own C++ and Python files. Tokenizers: Qwen2's; Llama 3's steps (its pattern,
ignore_merges, no normaliser) over Qwen2's vocabulary; and the small SentencePiece file of tests/golden/tokenizer.
Passes alternate; a program's figure is its best pass, so disturbed passes count for neither. The
peer's is the faster of encode in a loop and encode_batch_fast, which leaves out the offsets. Both must answer with the
same number of tokens; the tests check that the tokens are the same.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
import tokenizers

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "golden"))
import tokenizer_corpus


def sources():
    names = subprocess.run(["git", "-C", str(ROOT), "ls-files", "*.cpp", "*.h", "*.py"], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.split()
    return [(ROOT / name).read_text(encoding="utf-8") for name in names]


def tokenizer_files(data):
    """Name and text of each tokenizer.json."""
    qwen2 = tokenizer_corpus.qwen2(data).to_str()
    llama3 = json.loads(qwen2)
    llama3["normalizer"] = None
    llama3["model"]["ignore_merges"] = True
    llama3["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = tokenizer_corpus.LLAMA3
    sentence_piece = (ROOT / "tests/golden/tokenizer/sentence_piece.json").read_text(encoding="utf-8")
    return {"Qwen2": qwen2, "Llama 3's steps": json.dumps(llama3), "SentencePiece, small": sentence_piece}


class Carnot:
    def __init__(self, program, tokenizer, texts):
        self.process = subprocess.Popen([program, tokenizer, texts], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1)

    def seconds(self):
        self.process.stdin.write("\n")
        seconds, tokens = self.process.stdout.readline().split()
        return float(seconds), int(tokens)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class HuggingFace:
    def __init__(self, tokenizer, texts):
        self.tokenizer, self.texts = tokenizers.Tokenizer.from_str(tokenizer), texts

    def seconds(self):
        begin = time.perf_counter()
        for text in self.texts:
            self.tokenizer.encode(text, add_special_tokens=False)
        loop = time.perf_counter() - begin
        begin = time.perf_counter()
        encodings = self.tokenizer.encode_batch_fast(self.texts, add_special_tokens=False)
        batch = time.perf_counter() - begin
        return min(loop, batch), sum(len(one.ids) for one in encodings)


def compare(program, tokenizer, texts, rounds, folder):
    paths = [os.path.join(folder, name) for name in ("tokenizer.json", "texts.jsonl")]
    pathlib.Path(paths[0]).write_text(tokenizer, encoding="utf-8")
    pathlib.Path(paths[1]).write_text("".join(json.dumps(text) + "\n" for text in texts), encoding="utf-8")
    ours, theirs = Carnot(program, *paths), HuggingFace(tokenizer, texts)
    passes = [(ours.seconds(), theirs.seconds()) for _ in range(rounds)]
    ours.close()
    assert all(one[0][1] == one[1][1] for one in passes), "a different number of tokens"
    return min(one[0][0] for one in passes), min(one[1][0] for one in passes), passes[0][0][1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--program", default=str(ROOT / "build" / "tokenizer_bench"))
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    texts = {"GSM8K": list(tokenizer_corpus.gsm8k(arguments.data)), "code": sources()}
    print(f"`bench/peers/tokenizer_speed.py`: tokenizers {tokenizers.__version__}, one thread each, the best of"
          f" {arguments.rounds} alternating passes.\n")
    print("| encoding, million tokens/s | tokens | Carnot | tokenizers | ratio | target |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, tokenizer in tokenizer_files(arguments.data).items():
            for corpus, lines in texts.items():
                ours, theirs, tokens = compare(arguments.program, tokenizer, lines, arguments.rounds, folder)
                print(f"| {name}, {corpus} | {tokens:,} | {tokens / ours / 1e6:.2f} | {tokens / theirs / 1e6:.2f} |"
                      f" {theirs / ours:.2f} | 3.0 |", flush=True)


if __name__ == "__main__":
    main()
