#!/usr/bin/env python3
"""A model with random weights in bfloat16, as a Hugging Face folder and, for llama.cpp, as the GGUF file next to it.

    bench/peers/random_folder.py SHAPE FOLDER PROGRAM      makes FOLDER and FOLDER.gguf

SHAPE is a config.json, as in bench/shapes; PROGRAM is carnot, which exports the file.
"""
import json
import pathlib
import subprocess
import sys


def byte_tokenizer():
    """A token of each byte: a GGUF file has to have a tokenizer. It names the others of the vocabulary itself."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    symbols = [chr(byte) for byte in printable] + [chr(256 + i) for i in range(len(others))]
    return {"version": "1.0", "added_tokens": [],
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
            "model": {"type": "BPE", "vocab": {symbol: i for i, symbol in enumerate(symbols)}, "merges": []}}


def make_folder(shape, folder, program):
    import torch
    import transformers

    config = json.loads(pathlib.Path(shape).read_text())
    kind = config.pop("model_type")
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(kind, **config),
                                                          dtype=torch.bfloat16)
    model.save_pretrained(folder)
    pathlib.Path(folder, "tokenizer.json").write_text(json.dumps(byte_tokenizer()))
    subprocess.run([program, "export", folder, "--gguf", "bf16", "--output", f"{folder}.gguf", "--overwrite"],
                   check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    make_folder(*sys.argv[1:])
