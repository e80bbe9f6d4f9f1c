"""examples/agent with the real framework openai-agents, trained for a step.

    python3 agent_framework_test.py CARNOT WORK_FOLDER PYTHON

PYTHON has the package (tools/install_test_packages.sh).
"""
import glob
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "..", "..")

TOKENIZER = """
run_folder: {folder}/words
env: {{name: search_qa, train_worlds: 1, held_out_worlds: 1}}
model: {{hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}}
sft: {{steps: 1}}
rollout: {{group_size: 2}}
train: {{groups_per_step: 1}}
eval: {{tasks: 1}}
"""


def train(carnot, python, folder):
    """A step with a model of random weights: the reward hardly matters, but every episode must count."""
    for name in ("words", "run"):
        shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
    recipe = os.path.join(folder, "words.yaml")
    with open(recipe, "w", encoding="utf-8") as file:
        file.write(TOKENIZER.format(folder=folder))
    subprocess.run([carnot, "sft", recipe], check=True, stdout=subprocess.DEVNULL)
    [model] = glob.glob(os.path.join(folder, "words", "**", "global_step_1"), recursive=True)
    run = os.path.join(folder, "run")
    paths = dict(os.environ, PATH=os.path.dirname(python) + os.pathsep + os.environ["PATH"])
    subprocess.run([carnot, "train", os.path.join("examples", "agent", "word_count.yaml"), "run_folder=" + run,
                    "model.path=" + model, "tokenizer.chat=qwen2.5", "rollout.group_size=2", "train.steps=1",
                    "train.groups_per_step=2", "train.keep_rollouts=true", "eval.tasks=1", "env.timeout=250",
                    "env.start_timeout=250", "rollout.environment_timeout=300"], cwd=SOURCE, env=paths, check=True)
    with open(os.path.join(run, "rollouts", "step_1.jsonl"), encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    assert len(rows) == 4, rows
    for row in rows:
        assert row["valid"] and "said" in row["measures"] and sum(row["loss_mask"]) > 0, row


def main():
    carnot, folder, python = sys.argv[1:4]
    os.makedirs(folder, exist_ok=True)
    train(carnot, python, folder)


if __name__ == "__main__":
    main()
