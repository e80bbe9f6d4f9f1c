#!/usr/bin/env python3
"""Checks that transformers and PEFT load what `carnot export` writes, and compute what Carnot computes.

Run from the repository root, once build/carnot is built, with:
    pip install -r tools/checks/requirements.txt
    python3 tools/checks/peft_export.py

A small policy is trained with adapters and exported twice: merged, and as base and adapter. Carnot's own numbers are
the log-probabilities that `carnot rollout` records while it samples from the merged folder, and from base and adapter.
Prints the largest difference of each pair and fails above the bounds, in nats.
"""

import json
import pathlib
import subprocess
import tempfile

import torch
from peft import AutoPeftModelForCausalLM
from transformers import AutoModelForCausalLM, AutoTokenizer

BOUND = 1e-4  # float32 on both sides, sums in a different order
RECIPE = """
env: {name: search_qa, train_worlds: 2, held_out_worlds: 1}
model: {hidden_size: 64, intermediate_size: 128, num_layers: 2, num_heads: 4, num_kv_heads: 2, head_dim: 16, init_std: 0.2}
lora: {rank: 4, alpha: 8}
sft: {steps: 30, learning_rate: 2e-2, warmup_steps: 3}
objective: {kl_coefficient: 0.05}
rollout: {group_size: 4, max_context_tokens: 256, max_response_tokens: 40}
train: {steps: 2, groups_per_step: 2, learning_rate: 1e-2}
eval: {tasks: 1, before_training: false}
"""


def carnot(*arguments):
    subprocess.run(["build/carnot", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def rollouts(recipe, folder, *settings):
    """Trajectories sampled by the model that `settings` name, with the log-probabilities of their tokens."""
    carnot("rollout", recipe, f"run_folder={folder}", "sft.steps=0", "seed=3", *settings)
    return [json.loads(line) for line in (folder / "rollouts" / "step_0.jsonl").read_text().splitlines()]


def largest_difference(model, rows):
    """Between the recorded log-probabilities and those of a transformers or PEFT model."""
    largest, tokens = 0.0, 0
    for row in rows:
        ids = torch.tensor(row["token_ids"])
        with torch.no_grad():
            logprobs = model(input_ids=ids[None]).logits[0, :-1].log_softmax(-1)
        given = logprobs.gather(-1, ids[1:, None])[:, 0]
        for position, recorded in enumerate(row["logp_rollout"]):
            if recorded is not None:
                largest, tokens = max(largest, abs(given[position - 1].item() - recorded)), tokens + 1
    assert tokens > 100, "too few tokens for a comparison"
    return largest


def check(folder):
    recipe = folder / "recipe.yaml"
    recipe.write_text(RECIPE)
    carnot("train", recipe, f"run_folder={folder / 'run'}")
    carnot("export", folder / "run", "--output", folder / "merged", "--merge-lora")
    carnot("export", folder / "run", "--output", folder / "apart")
    carnot("export", folder / "run", "--output", folder / "shards", "--merge-lora", "--shard-megabytes", 0.2)

    merged = AutoModelForCausalLM.from_pretrained(folder / "merged").eval()
    checkpoint = next((folder / "run" / "checkpoints").glob("global_step_*"))
    apart = AutoPeftModelForCausalLM.from_pretrained(folder / "apart" / "adapter").eval()
    of_merged = rollouts(recipe, folder / "a", "lora.rank=0", f"model.path={folder / 'merged'}")
    of_adapter = rollouts(recipe, folder / "b", f"model.path={folder / 'apart' / 'base'}",
                          f"model.adapter={folder / 'apart' / 'adapter'}")
    pairs = {
        "merged in transformers, merged in Carnot": largest_difference(merged, of_merged),
        "adapter in PEFT, adapter in Carnot": largest_difference(apart, of_adapter),
        "merged in transformers, adapter in Carnot": largest_difference(merged, of_adapter),
        "checkpoint in PEFT, adapter in Carnot":
            largest_difference(AutoPeftModelForCausalLM.from_pretrained(checkpoint / "adapter").eval(), of_adapter),
        "shards in transformers, adapter in Carnot":
            largest_difference(AutoModelForCausalLM.from_pretrained(folder / "shards").eval(), of_adapter),
    }
    for name, difference in pairs.items():
        print(f"{difference:.1e} nats at most: {name}")
    base = AutoModelForCausalLM.from_pretrained(folder / "apart" / "base").eval()
    moved = largest_difference(base, of_adapter)
    print(f"{moved:.1e} nats: what the adapter changed")

    prompt = torch.tensor([of_adapter[0]["token_ids"][:20]])
    options = dict(max_new_tokens=20, do_sample=False, attention_mask=torch.ones_like(prompt))
    same = torch.equal(merged.generate(prompt, **options), apart.generate(input_ids=prompt, **options))
    print("greedy tokens of merged and apart:", "the same" if same else "different")
    text = "What is the region of Pelminster ?"
    tokenizer = AutoTokenizer.from_pretrained(folder / "merged")
    ids = json.loads(subprocess.run(["build/carnot", "tokenize", folder / "merged"], input=json.dumps(text) + "\n",
                                    check=True, capture_output=True, text=True).stdout)
    print("token ids of", repr(text), "the same" if tokenizer(text)["input_ids"] == ids else "different")
    return max(pairs.values()) < BOUND < moved and same and tokenizer(text)["input_ids"] == ids


with tempfile.TemporaryDirectory() as scratch:
    raise SystemExit(0 if check(pathlib.Path(scratch)) else "differences above the bounds")
