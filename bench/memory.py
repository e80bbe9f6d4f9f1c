#!/usr/bin/env python3
"""Measures the peak memory of small runs against its prediction; the table of bench/results/memory.md.

    cmake --build build --target carnot && python3 bench/memory.py > table.md

Each run is a separate process with an untrained policy, whose trajectories fill the context, as the prediction assumes.
Both numbers are those of summary.json: VmHWM of /proc/self/status, and `carnot train --dry-run`'s sum.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

BASE = """
env: {name: search_qa, train_worlds: 2, held_out_worlds: 1}
eval: {tasks: 8, before_training: false}
threads: 1
objective: {kl_coefficient: 0}
"""
TINY = ["model.hidden_size=128", "model.intermediate_size=384", "model.num_layers=4", "rollout.group_size=8",
        "rollout.max_context_tokens=384", "rollout.max_response_tokens=384", "train.groups_per_step=4"]
MEDIUM = ["model.hidden_size=512", "model.intermediate_size=1536", "model.num_layers=8", "model.num_heads=8",
          "model.num_kv_heads=4", "model.head_dim=64", "rollout.group_size=4", "rollout.max_context_tokens=384",
          "rollout.max_response_tokens=384", "train.groups_per_step=4"]
RUNS = [
    ("quickstart's shape", TINY),
    ("quickstart's shape, checkpointing", TINY + ["train.activation_checkpointing=true"]),
    ("quickstart's shape, critic", TINY + ["method=ppo"]),
    ("quickstart's shape, bfloat16", TINY + ["dtype=bfloat16"]),
    ("26 M", MEDIUM),
    ("26 M, checkpointing", MEDIUM + ["train.activation_checkpointing=true"]),
    ("26 M, micro-batches of 1024", MEDIUM + ["train.micro_batch_tokens=1024"]),
    ("26 M, reference", MEDIUM + ["objective.kl_coefficient=0.05"]),
    ("26 M, rank 8", MEDIUM + ["lora.rank=8"]),
    ("26 M, rank 8, reference, checkpointing",
     MEDIUM + ["lora.rank=8", "objective.kl_coefficient=0.05", "train.activation_checkpointing=true"]),
    ("26 M, bfloat16", MEDIUM + ["dtype=bfloat16"]),
    ("26 M, bfloat16, rank 8, checkpointing",
     MEDIUM + ["dtype=bfloat16", "lora.rank=8", "train.activation_checkpointing=true"]),
]


def measure(settings, folder):
    recipe = folder / "recipe.yaml"
    recipe.write_text(BASE)
    done = subprocess.run(["build/carnot", "train", recipe, f"run_folder={folder / 'run'}", "train.steps=2", *settings],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode != 0:
        sys.exit(done.stderr)
    memory = json.loads((folder / "run" / "summary.json").read_text())["memory"]
    return memory["predicted_peak_mib"], memory["measured_peak_mib"]


print("| run | predicted, MiB | measured, MiB | difference |")
print("|---|---|---|---|")
worst = 0.0
for name, settings in RUNS:
    if len(sys.argv) > 1 and sys.argv[1] not in name:
        continue
    with tempfile.TemporaryDirectory() as scratch:
        predicted, measured = measure(settings, pathlib.Path(scratch))
    worst = max(worst, abs(predicted / measured - 1))
    print(f"| {name} | {predicted} | {measured} | {100 * (predicted / measured - 1):+.1f} % |", flush=True)
print(f"\nLargest difference: {100 * worst:.1f} %")
