#!/usr/bin/env python3
"""Compares llama.cpp's log-probabilities with Carnot's for a small random model of each family.

    pip install xllamacpp==2026.10.11549
    python3 tools/checks/llama_cpp_families.py build/carnot

Each recorded file (tests/recorded/gguf) is imported to a folder in float32 and exported as f32. Carnot continues random
prompts of 150 tokens, beyond the models' windows and pretraining lengths, by 8 tokens, greedily; before each of them,
llama.cpp is asked for the five most likely tokens. Prints the largest difference between their log-probabilities and
Carnot's; how often the most likely one is the same (llama.cpp reports none that ends inside a character); and how many
texts llama.cpp splits into the tokens that were recorded from Hugging Face's tokenizers (it does not compose
characters, as NFC does). Status 1 if log-probabilities differ by more than 0.005, or the most likely tokens by as much.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import urllib.request

import xllamacpp as llama

RECORDED = pathlib.Path(__file__).resolve().parents[2] / "tests" / "recorded" / "gguf"
FILES = {"llama": "smollm", "llama 3.1": "llama3", "qwen2": "qwen2", "qwen3": "qwen3"}
PROMPTS, LENGTH, TOKENS, ALTERNATIVES = 3, 150, 8, 5
TOLERANCE = 0.005  # weights of this size amplify the rounding of float32


def carnot(program, *arguments, lines=()):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([program, *map(str, arguments)], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


def results(program, *arguments, lines):
    return [json.loads(line) for line in carnot(program, *arguments, lines=lines).splitlines()]


def server_of(file):
    options = llama.CommonParams()
    options.model.path = str(file)
    options.n_ctx, options.n_parallel, options.warmup = 256, 1, False
    options.cache_type_k = options.cache_type_v = llama.ggml_type.GGML_TYPE_F32
    options.flash_attn_type = llama.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    return llama.Server(options)


def tokens_of(server, text):
    body = json.dumps({"content": text, "add_special": False}).encode()
    with urllib.request.urlopen(urllib.request.Request(server.listening_address + "/tokenize", body)) as answer:
        return json.load(answer)["tokens"]


def most_likely(server, prompt):
    """The tokens with the highest log-probabilities, and these; an empty list if the first ends inside a character."""
    answer = server.handle_completions(
        {"prompt": prompt, "max_tokens": 1, "temperature": 0, "cache_prompt": False, "logprobs": ALTERNATIVES})
    content = (answer["choices"][0]["logprobs"] or {"content": []})["content"]
    return [(top["id"], top["logprob"]) for one in content for top in one["top_logprobs"]]


def compare(program, file, recorded, scratch):
    folder, exported = scratch / "folder", scratch / "model.gguf"
    carnot(program, "import", file, "--output", folder, "--dtype", "float32", "--overwrite")
    carnot(program, "export", folder, "--output", exported, "--gguf", "f32", "--overwrite")
    server = server_of(exported)
    generator = random.Random(file.name)
    last = recorded["config"]["vocab_size"] - 30
    prompts = [{"ids": [generator.randrange(3, last) for _ in range(LENGTH)]} for _ in range(PROMPTS)]
    scored, theirs = [], []
    for one in results(program, "generate", "--model", folder, "--json", "--temperature", 0, "--max-tokens", TOKENS,
                       "--input", "-", lines=prompts):
        for i in range(len(one["ids"])):
            before = one["prompt_ids"] + one["ids"][:i]
            alternatives = most_likely(server, before)
            theirs += [[logp for _, logp in alternatives]] if alternatives else []
            scored += [{"ids": [*before, token]} for token, _ in alternatives]
    logps = iter([one["logp"][-1] for one in results(program, "score", "--model", folder, lines=scored)])
    ours = [[next(logps) for _ in alternatives] for alternatives in theirs]
    largest = max(abs(a - b) for x, y in zip(ours, theirs) for a, b in zip(x, y))
    same = sum(x[y.index(max(y))] >= max(x) - TOLERANCE for x, y in zip(ours, theirs))
    texts = recorded["texts"]
    equal = sum(tokens_of(server, text) == ids for text, ids in texts)
    return largest, same, len(theirs), f"{equal} of {len(texts)} texts have the same tokens"


def main():
    program, wrong = sys.argv[1], 0
    families = json.loads((RECORDED / "families.json").read_text())
    known = json.loads((RECORDED / "expected.json").read_text()) | families
    with tempfile.TemporaryDirectory() as scratch:
        for family, name in (FILES | {name: name for name in families}).items():
            largest, same, compared, texts = compare(program, RECORDED / f"{name}.gguf", known[name], pathlib.Path(scratch))
            wrong += largest > TOLERANCE or same < compared
            print(f"{family}: log-probabilities differ by {largest:.1e} at most, {same} of {compared} most likely "
                  f"tokens are the same, {texts}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # llama.cpp's threads may wait for each other when the interpreter ends
