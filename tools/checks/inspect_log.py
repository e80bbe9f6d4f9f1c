#!/usr/bin/env python3
"""Checks that Inspect reads what `carnot view --inspect` writes, and that it agrees with the rows.

Run from the repository root, once build/carnot is built, with:
    pip install -r tools/checks/requirements_view.txt
    python3 tools/checks/inspect_log.py [RUN]

RUN is a run folder; without one a small run is trained.
"""

import json
import math
import pathlib
import subprocess
import sys
import tempfile

from inspect_ai.log import list_eval_logs, read_eval_log

RECIPE = """
env: {name: search_qa, train_worlds: 2, held_out_worlds: 1}
model: {hidden_size: 64, intermediate_size: 128, num_layers: 2, num_heads: 4, num_kv_heads: 2, head_dim: 16}
sft: {steps: 60, learning_rate: 1e-2, warmup_steps: 3}
objective: {kl_coefficient: 0}
rollout: {group_size: 4, max_context_tokens: 320, max_response_tokens: 40}
train: {steps: 2, groups_per_step: 3}
eval: {tasks: 1, before_training: false}
"""


def carnot(*arguments):
    subprocess.run(["build/carnot", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def compare(sample, row):
    assert sample.metadata["trajectory"] == row["traj_id"], (sample.metadata, row["traj_id"])
    assert sample.target == row["gts"]
    spoken = [message for message in sample.messages if message.role == "assistant" and message.source == "generate"]
    assert len(spoken) == sum(any(row["loss_mask"][turn["start"]:turn["end"]]) for turn in row["turns"])
    text = row["input"] + row["output"]
    for message in sample.messages:
        assert message.text in text, message.text
    called = [message.tool_calls[0].function for message in spoken if message.tool_calls]
    assert called == [turn["tool"] for turn in row["turns"] if turn["tool"]]
    usage = sample.output.usage
    assert usage.output_tokens == sum(row["loss_mask"]) and usage.total_tokens == len(row["token_ids"])
    if not row["valid"]:
        assert sample.error and not sample.scores
        return
    scores = {name: score.value for name, score in sample.scores.items()}
    assert scores == dict(row["measures"], score=row["score"], success=float(row["success"])), scores
    logprobs = [one.logprob for one in sample.output.choices[0].logprobs.content]
    last = [value for value in row["logp_rollout"] if value is not None][-len(logprobs):]
    assert logprobs == last
    entropies = [value for value in row["entropy"] if value is not None]
    assert math.isclose(sample.metadata["entropy"], sum(entropies) / len(entropies), rel_tol=1e-9)


def check(run, folder):
    carnot("view", run, "--inspect", folder)
    logs = list_eval_logs(str(folder))
    assert logs, "Inspect lists no log"
    samples = 0
    for info in logs:
        log = read_eval_log(info)
        assert log.status == "success" and log.version == 2
        step = log.eval.metadata["step"]
        rows = {}
        for line in (run / "rollouts" / f"step_{step}.jsonl").read_text().splitlines():
            row = json.loads(line)
            rows.setdefault(row["uid"], []).append(row)
        assert len(log.samples) == sum(map(len, rows.values()))
        for sample in log.samples:
            compare(sample, rows[sample.id][sample.epoch - 1])
            samples += 1
        means = {score.name: score.metrics["mean"].value for score in log.results.scores}
        valid = [row for group in rows.values() for row in group if row["valid"]]
        assert math.isclose(means["success"], sum(row["success"] for row in valid) / len(valid), rel_tol=1e-9)
    print(f"{len(logs)} logs with {samples} samples agree with the rows")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        run = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else scratch / "run"
        if len(sys.argv) < 2:
            (scratch / "recipe.yaml").write_text(RECIPE)
            carnot("train", scratch / "recipe.yaml", f"run_folder={run}")
        check(run, scratch / "logs")
