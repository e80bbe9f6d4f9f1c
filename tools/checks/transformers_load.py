#!/usr/bin/env python3
"""Loads Carnot's checkpoints in transformers without conversion and compares log-probabilities with Carnot's own.

    pip install -r tools/checks/requirements.txt
    python3 tools/checks/transformers_load.py build/carnot --gguf .cache/smollm2

For each family a small model with random weights and a trained tokenizer is trained for a few SFT steps (`carnot sft`);
`carnot rollout` then samples with that checkpoint and writes what it measured. AutoModelForCausalLM and AutoTokenizer read
the folder without any conversion. Checked: no weight is missing, unexpected or misshapen; the log-probability of every
sampled token; that the tokenizer gives the token ids of the rollout's text; and the end tokens of
generation_config.json. With --gguf: that AutoModelForCausalLM reads the same weights from the GGUF file that `carnot
export` makes of a folder as from the folder.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "2")
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

FAMILIES = {
    "llama": ["model.num_kv_heads=4", "model.head_dim=16", "model.tied_head=false", "model.rms_norm_epsilon=1e-5"],
    "mistral": ["model.num_kv_heads=1", "model.head_dim=24", "model.tied_head=false"],
    "qwen2": ["model.num_kv_heads=2", "model.head_dim=16"],
    "qwen3": ["model.num_kv_heads=2", "model.head_dim=32"],
    "phi3": ["model.num_kv_heads=2", "model.head_dim=16", "model.tied_head=false", "model.window=48"],
    "qwen3_moe": ["model.num_kv_heads=2", "model.head_dim=32", "model.num_experts=5", "model.experts_per_token=2",
                  "model.expert_size=48", "model.normalise_top_k=true"],
    "olmoe": ["model.num_kv_heads=2", "model.head_dim=16", "model.num_experts=4", "model.experts_per_token=3"],
}
BOUND = 2e-4  # nats; both sides compute in float32


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")


def make_checkpoint(carnot, family, work):
    shape = ["model.hidden_size=64", "model.intermediate_size=160", "model.num_layers=2", "model.num_heads=4",
             f"model.family={family}", *FAMILIES[family]]
    common = ["recipes/quickstart.yaml", "rollout.max_context_tokens=400"]
    run(carnot, "sft", *common, *shape, "sft.steps=30", "eval.tasks=4", f"run_folder={work}/sft")
    checkpoint = sorted((work / "sft").rglob("global_step_*"))[-1]
    run(carnot, "rollout", *common, f"model.path={checkpoint}", "train.groups_per_step=4", "rollout.group_size=2",
        f"run_folder={work}/rollout")
    rows = next((work / "rollout" / "rollouts").glob("*.jsonl"))
    return checkpoint, [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]


def log_probs(model, tokens):
    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[0, :-1]
    return logits.log_softmax(-1).gather(-1, torch.tensor(tokens[1:])[:, None])[:, 0]


def compare(model, rows):
    """Largest difference of a sampled token's log-probability, and how many there are."""
    largest, count = 0.0, 0
    for row in rows:
        for at, (got, recorded) in enumerate(zip(log_probs(model.eval(), row["token_ids"]).tolist(), row["logp_rollout"][1:])):
            if row["loss_mask"][at + 1]:
                largest, count = max(largest, abs(got - recorded)), count + 1
    return largest, count


def check(family, carnot, work):
    checkpoint, rows = make_checkpoint(carnot, family, work)
    model, info = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32, output_loading_info=True)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    assert model.generation_config.eos_token_id, "generation_config.json names no end token"
    for row in rows:
        tokens = row["token_ids"]
        text = tokenizer.decode(tokens, skip_special_tokens=False)
        assert tokenizer.encode(text, add_special_tokens=False) == tokenizer.encode(
            row["input"] + row["output"], add_special_tokens=False), row["traj_id"]
    largest, count = compare(model, rows)
    assert count > 0 and largest < BOUND, f"{family}: {count} tokens, largest difference {largest}"
    print(f"{family}: {type(model).__name__}, {len(rows)} trajectories, {count} sampled tokens, "
          f"largest difference {largest:.1e} nats")


def check_gguf(carnot, folder, work):
    run(carnot, "export", folder, "--output", work / "model.gguf", "--gguf", "f32")
    expected = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).state_dict()
    found = AutoModelForCausalLM.from_pretrained(work, gguf_file="model.gguf", dtype=torch.float32).state_dict()
    different = [name for name in expected.keys() | found.keys() if not torch.equal(expected[name], found[name])]
    assert not different, different
    print(f"{folder}: {len(expected)} tensors are the same from a GGUF file")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("carnot", type=pathlib.Path)
    parser.add_argument("--families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--gguf", type=pathlib.Path, help="folder of a model that is also exported as GGUF")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        for family in arguments.families:
            check(family, arguments.carnot, pathlib.Path(work) / family)
        if arguments.gguf:
            check_gguf(arguments.carnot, arguments.gguf, pathlib.Path(work))


main()
