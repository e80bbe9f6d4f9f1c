"""examples/agent with the real framework openai-agents: played by a script, and trained for a step.

    python3 agent_framework_test.py CARNOT HARNESS_TEST WORK_FOLDER [PYTHON]

HARNESS_TEST is the program agent_harness_test. PYTHON has the package; without it, one is put into a virtual environment
in WORK_FOLDER. Where that cannot be done (no network), the test is skipped: exit status 77.
"""
import glob
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from python_package import python_with_package

SOURCE = os.path.join(HERE, "..", "..")
PACKAGE = "openai-agents==0.24.0"

TOKENIZER = """
run_folder: {folder}/words
env: {{name: search_qa, train_worlds: 1, held_out_worlds: 1}}
model: {{hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}}
sft: {{steps: 1}}
rollout: {{group_size: 2}}
train: {{groups: 1}}
eval: {{tasks: 1}}
"""


def train(carnot, python, folder):
    """A step with a model of random weights: the reward hardly matters, that every episode counts does."""
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
                    "train.groups=2", "train.keep_rollouts=true", "eval.tasks=1", "env.timeout=250",
                    "env.start_timeout=250", "rollout.environment_timeout=300"], cwd=SOURCE, env=paths, check=True)
    with open(os.path.join(run, "rollouts", "step_1.jsonl"), encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    assert len(rows) == 4, rows
    for row in rows:
        assert row["valid"] and "said" in row["measures"] and sum(row["loss_mask"]) > 0, row


def main():
    carnot, harness_test, folder = sys.argv[1:4]
    os.makedirs(folder, exist_ok=True)
    python = sys.argv[4] if len(sys.argv) > 4 else python_with_package(folder, PACKAGE, "agents")
    subprocess.run([harness_test, "--gtest_filter=AgentFramework.*"], check=True,
                   env=dict(os.environ, CARNOT_AGENTS_PYTHON=python))
    train(carnot, python, folder)


if __name__ == "__main__":
    main()
