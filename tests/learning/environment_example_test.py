"""The smallest example of a custom environment, from docs/process_environments.md, shortened: it learns.

    python3 environment_example_test.py CARNOT WORK_FOLDER
"""
import os
import sys

from reward_example_test import train


def main():
    carnot, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    recipe = "examples/environment/shopping.yaml"
    before, after = train(carnot, folder, recipe, "train.steps=40", "train.decay=constant")
    # Without reading the list, half of the items on average.
    assert before["mean_score"] < 0.1 and after["mean_score"] > 0.6, (before["mean_score"], after["mean_score"])


if __name__ == "__main__":
    main()
