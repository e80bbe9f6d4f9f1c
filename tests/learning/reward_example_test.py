"""The smallest example of a custom reward, from docs/datasets.md, shortened: it learns.

    python3 reward_example_test.py CARNOT WORK_FOLDER
"""
import json
import os
import shutil
import subprocess
import sys

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def train(carnot, folder, recipe, *settings):
    """The results of the evaluations before and after."""
    run = os.path.join(folder, os.path.splitext(os.path.basename(recipe))[0])
    shutil.rmtree(run, ignore_errors=True)
    subprocess.run([carnot, "train", recipe, "run_folder=" + run, *settings], cwd=SOURCE, check=True,
                   env=dict(os.environ, CARNOT_PYTHON=os.path.join(SOURCE, "python")))
    with open(os.path.join(run, "summary.json"), encoding="utf-8") as file:
        summary = json.load(file)
    assert summary["before"]["infra_failures"] == summary["after"]["infra_failures"] == 0, summary
    return summary["before"], summary["after"]


def main():
    carnot, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    before, after = train(carnot, folder, "examples/reward/capitals.yaml", "train.steps=25")
    assert before["mean_score"] < 0.1 and after["mean_score"] > 0.4, (before["mean_score"], after["mean_score"])


if __name__ == "__main__":
    main()
