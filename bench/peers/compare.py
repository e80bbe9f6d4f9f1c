#!/usr/bin/env python3
"""Carnot and PyTorch side by side on the same model, the same token sequences, the same machine, in one run.

    pip install -r bench/peers/requirements.txt
    bench/peers/compare.py --speed build/speed_bench --run runs/quickstart --out bench/results/speed.md

Rounds alternate: Carnot, then PyTorch, each with two threads. Peers:
  training  transformers' Qwen2 in eager PyTorch, float32, SDPA; sequences padded to the longest of a chunk, chunks
            sorted by length; cross entropy on the counted tokens; AdamW (foreach). Tokens are counted unpadded.
  rollout   transformers' generate: whole multi-turn episodes of the recorded lengths, sampled at temperature 1, a batch
  of 64, padded on the left, one call per turn with that turn's cache. Every sequence stops at its own recorded length,
  and continues with the recorded tool result. Tokens are the sampled ones. step      a whole step of GRPO by TRL's
  GRPOTrainer, with that rollout as its rollout_func: 64 trajectories and two
            updates of 32. Tokens are the sampled ones.

--json prints each row as a JSON object: name, ours, peer, ratio, limit_fraction, peak_mebibytes (the last two null).
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "2")
import torch
import transformers
import trl
from transformers import (AutoModelForCausalLM, PreTrainedTokenizerFast, StoppingCriteria, StoppingCriteriaList,
                          TrainerCallback)

import results as kept

TRAINING = ["SFT, ragged", "SFT, equal lengths", "reinforcement update, ragged"]
ROLLOUT = "rollout of 64 trajectories"
STEP = "step of GRPO with 64 trajectories"
TARGETS = {ROLLOUT: 5.0, TRAINING[0]: 1.5, TRAINING[1]: 1.2, TRAINING[2]: 1.5, STEP: 5.0}


def load(checkpoint):
    return AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32, attn_implementation="sdpa")


def padded(chunk):
    longest = max(len(s["tokens"]) for s in chunk)
    tokens = torch.zeros(len(chunk), longest, dtype=torch.long)
    present = torch.zeros(len(chunk), longest, dtype=torch.long)
    counts = torch.zeros(len(chunk), longest, dtype=torch.bool)
    for i, s in enumerate(chunk):
        n = len(s["tokens"])
        tokens[i, :n] = torch.tensor(s["tokens"])
        present[i, :n] = 1
        counts[i, :n] = torch.tensor(s["counts"], dtype=torch.bool)
    return tokens, present, counts


def train_on(model, optimizer, batch, chunk_size):
    batch = sorted(batch, key=lambda s: len(s["tokens"]))
    for begin in range(0, len(batch), chunk_size):
        tokens, present, counts = padded(batch[begin : begin + chunk_size])
        hidden = model.model(input_ids=tokens, attention_mask=present).last_hidden_state[:, :-1]
        keep = counts[:, 1:]
        logits = model.lm_head(hidden[keep])
        torch.nn.functional.cross_entropy(logits, tokens[:, 1:][keep]).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def training_speed(model, batches, chunk_size):
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, foreach=True)
    speeds = []
    for attempt in range(2):
        tokens, begin = 0, time.perf_counter()
        for batch in batches:
            train_on(model, optimizer, batch, chunk_size)
            tokens += sum(len(s["tokens"]) for s in batch)
        if attempt > 0:
            speeds.append(tokens / (time.perf_counter() - begin))
    return statistics.median(speeds)


class OwnLength(StoppingCriteria):
    """Ends each sequence after its own number of new tokens."""

    def __init__(self, prompt, lengths):
        self.prompt, self.lengths = prompt, torch.tensor(lengths)

    def __call__(self, input_ids, scores, **kwargs):
        return input_ids.shape[1] - self.prompt >= self.lengths


@torch.inference_mode()
def roll_out(model, episodes):
    """Returns how many tokens were sampled."""
    model.eval()
    sampled = 0
    for turn in range(max(len(e["turns"]) for e in episodes)):
        active = [e for e in episodes if len(e["turns"]) > turn]
        contexts = [e["tokens"][: e["turns"][turn]["begin"]] for e in active]
        lengths = [e["turns"][turn]["end"] - e["turns"][turn]["begin"] for e in active]
        longest = max(map(len, contexts))
        tokens = torch.zeros(len(active), longest, dtype=torch.long)
        present = torch.zeros_like(tokens)
        for i, context in enumerate(contexts):
            tokens[i, longest - len(context) :] = torch.tensor(context)
            present[i, longest - len(context) :] = 1
        model.generate(
            input_ids=tokens,
            attention_mask=present,
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            eos_token_id=None,
            pad_token_id=0,
            max_new_tokens=max(lengths),
            stopping_criteria=StoppingCriteriaList([OwnLength(longest, lengths)]),
        )
        sampled += sum(lengths)
    return sampled


def rollout_speed(model, episodes):
    begin = time.perf_counter()
    return roll_out(model, episodes) / (time.perf_counter() - begin)


class StepTimes(TrainerCallback):
    def __init__(self):
        self.seconds, self.begin = [], 0

    def on_step_begin(self, *arguments, **kwargs):
        self.begin = time.perf_counter()

    def on_step_end(self, *arguments, **kwargs):
        self.seconds.append(time.perf_counter() - self.begin)


def trl_step_speed(checkpoint, episodes):
    """Sampled tokens per second of TRL's step: the rollout, and two updates of half of the trajectories."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    model = load(checkpoint)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=os.path.join(checkpoint, "tokenizer.json"))
    tokenizer.pad_token = tokenizer.eos_token = tokenizer.convert_ids_to_tokens(0)
    prompts = [e["turns"][0]["begin"] for e in episodes]

    def rollout(texts, trainer):
        roll_out(trainer.model, episodes)
        masks = []
        for episode, prompt in zip(episodes, prompts):
            mask = [0] * len(episode["tokens"])
            for turn in episode["turns"]:
                mask[turn["begin"] : turn["end"]] = [1] * (turn["end"] - turn["begin"])
            masks.append(mask[prompt:])
        trainer.model.train()
        return {"prompt_ids": [e["tokens"][:p] for e, p in zip(episodes, prompts)],
                "completion_ids": [e["tokens"][p:] for e, p in zip(episodes, prompts)], "logprobs": None,
                "env_mask": masks}

    def reward(completions, **kwargs):
        return [float(i % 3 == 0) for i in range(len(completions))]

    times = StepTimes()
    with tempfile.TemporaryDirectory() as folder:
        arguments = GRPOConfig(
            output_dir=folder, use_cpu=True, bf16=False, report_to="none", save_strategy="no", logging_strategy="no",
            disable_tqdm=True, per_device_train_batch_size=len(episodes) // 2, steps_per_generation=2,
            num_generations=8, max_steps=6, learning_rate=1e-5, beta=0.0, max_completion_length=1024,
            gradient_checkpointing=False, dataloader_pin_memory=False)
        data = Dataset.from_dict({"prompt": [str(i) for i in range(64)]})
        trainer = GRPOTrainer(model=model, reward_funcs=reward, args=arguments, train_dataset=data,
                              processing_class=tokenizer, rollout_func=rollout, callbacks=[times])
        with contextlib.redirect_stdout(sys.stderr):
            trainer.train()
    sampled = sum(turn["end"] - turn["begin"] for e in episodes for turn in e["turns"])
    steps = [a + b for a, b in zip(times.seconds[::2], times.seconds[1::2])]
    return sampled / min(steps)


def measure_rounds(arguments):
    """Tokens/s of each row and round: ours, theirs."""
    ours = {name: [] for name in [ROLLOUT] + TRAINING + [STEP]}
    theirs = {name: [] for name in ours}
    with tempfile.TemporaryDirectory() as folder:
        workload_file, figures_file = os.path.join(folder, "workload.json"), os.path.join(folder, "figures.json")
        for round_number in range(arguments.rounds):
            subprocess.run([arguments.speed, arguments.run, "--workload", workload_file, "--json", figures_file],
                           check=True, stdout=subprocess.DEVNULL if round_number or arguments.json else None)
            with open(figures_file) as figures:
                measured = json.load(figures)
            with open(workload_file) as workload:
                work = json.load(workload)
            sampled = sum(turn["end"] - turn["begin"] for e in work["episodes"] for turn in e["turns"])
            measured[STEP] = sampled / (1e-3 * measured["step of 64 trajectories: step"])
            for name in ours:
                ours[name].append(measured[name])
            model = load(work["checkpoint"])
            for name in TRAINING:
                # The best of three chunk sizes is the peer's figure.
                theirs[name].append(max(training_speed(model, work[name], size) for size in (8, 16, 32)))
            model = load(work["checkpoint"])
            theirs[ROLLOUT].append(max(rollout_speed(model, work["episodes"]) for _ in range(2)))
            theirs[STEP].append(trl_step_speed(work["checkpoint"], work["episodes"]))
            print("round", round_number + 1, {n: round(ours[n][-1] / theirs[n][-1], 2) for n in ours}, file=sys.stderr, flush=True)
    return ours, theirs


def report(ours, theirs, rounds):
    lines = [
        "# Speed, side by side",
        "",
        f"`bench/peers/compare.py`: torch {torch.__version__}, transformers {transformers.__version__},"
        f" TRL {trl.__version__}, two threads each,"
        f" float32, the quickstart's model and data, medians of {rounds} alternating rounds.",
        "",
        "| what, tokens/s | Carnot | PyTorch | ratio (min to max) | target |",
        "|---|---|---|---|---|",
    ]
    for name in ours:
        ratios = [a / b for a, b in zip(ours[name], theirs[name])]
        lines.append(
            f"| {name} | {statistics.median(ours[name]):,.0f} | {statistics.median(theirs[name]):,.0f} |"
            f" {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | {TARGETS[name]} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--speed", default="build/speed_bench")
    parser.add_argument("--run", default="runs/quickstart")
    parser.add_argument("--out", default="bench/results/speed.md")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="a JSON object for each row")
    parser.add_argument("--models", help="adds the rows to this page of bench/peers/models.py, too")
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    transformers.logging.set_verbosity_error()

    ours, theirs = measure_rounds(arguments)
    page = report(ours, theirs, arguments.rounds)
    with open(arguments.out, "w") as out:
        out.write(page + "\n")
    results = kept.Results(arguments.models) if arguments.models else None
    for name in ours:
        ratios = [a / b for a, b in zip(ours[name], theirs[name])]
        row = {"name": f"quickstart: {name} [tokens/s]", "ours": statistics.median(ours[name]),
               "peer": statistics.median(theirs[name]), "ratio": statistics.median(ratios), "limit_fraction": None,
               "peak_mebibytes": None}
        if arguments.json:
            print(json.dumps(row))
        if results:
            results.add(row | {"least_ratio": min(ratios), "most_ratio": max(ratios), "ratio_target": TARGETS[name]})
    if not arguments.json:
        print(page)


if __name__ == "__main__":
    main()
