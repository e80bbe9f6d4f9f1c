#!/usr/bin/env python3
"""Exports a model as GGUF and compares llama.cpp's greedy answers with Carnot's.

    pip install xllamacpp==2026.10.11549
    python3 tools/checks/llama_cpp.py build/carnot .cache/smollm2

For f16 and q8_0: `carnot export --gguf` writes the file, llama.cpp answers from it, and Carnot answers from the folder that
`carnot import` makes of it. Both compute in float32, llama.cpp with the KV cache in float32 and without flash attention.
Prints how many answers are equal; status 1 if f16's are not all. With q8_0, llama.cpp also rounds the activations that it
multiplies with the blocks to eight bits, so answers of a small model differ.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import xllamacpp as llama

QUESTIONS = [
    "What is the capital of France?", "Name three colors.", "What is 2 + 2?", "Who wrote Hamlet?", "Why is the sky blue?",
    "Write a sentence about a cat.", "What does DNA stand for?", "How many days are in a week?", "What is water made of?",
    "Give me a synonym of happy.", "Translate good morning to Spanish.", "What is the largest planet?", "Who was Ada Lovelace?",
    "What is a prime number?", "Name a river in Egypt.", "What color is grass?", "What is the opposite of cold?",
    "How do bees make honey?", "What is the speed of light?", "Say hello.",
]  # fmt: skip
TOKENS = 24


def carnot(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


def answers_of_carnot(program, folder):
    out = carnot(program, "generate", "--model", folder, "--temperature", 0, "--max-tokens", TOKENS, *QUESTIONS)
    return [part.split("\n", 1)[1].rstrip("\n") for part in out.split("-------- prompt ")[1:]]


def answers_of_llama_cpp(file):
    options = llama.CommonParams()
    options.model.path = str(file)
    options.n_ctx, options.n_parallel, options.warmup = 512, 1, False
    options.cache_type_k = options.cache_type_v = llama.ggml_type.GGML_TYPE_F32
    options.flash_attn_type = llama.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    server = llama.Server(options)
    request = {"max_tokens": TOKENS, "temperature": 0, "cache_prompt": False}
    return [
        server.handle_chat_completions({"messages": [{"role": "user", "content": question}], **request})["choices"][0]["message"]["content"]
        for question in QUESTIONS
    ]


def main():
    program, model = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        for kind in ("f16", "q8_0"):
            file, folder = pathlib.Path(scratch) / f"{kind}.gguf", pathlib.Path(scratch) / kind
            carnot(program, "export", model, "--output", file, "--gguf", kind)
            carnot(program, "import", file, "--output", folder)
            ours, theirs = answers_of_carnot(program, folder), answers_of_llama_cpp(file)
            equal = sum(a.strip() == b.strip() for a, b in zip(ours, theirs, strict=True))
            print(f"{kind}: {equal} of {len(QUESTIONS)} answers are equal", flush=True)
            for question, a, b in zip(QUESTIONS, ours, theirs):
                if a.strip() != b.strip():
                    print(f"  {question}\n    Carnot    {a!r}\n    llama.cpp {b!r}")
            if kind == "f16" and equal < len(QUESTIONS):
                return 1
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # llama.cpp's threads may wait for each other when the interpreter ends
