"""Rows for recipes/smollm2_sums.yaml: all sums and differences up to 40, of which 400 are for tests.

python3 examples/sums.py FOLDER
"""
import json
import os
import random
import sys


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    rows = [(f"What is {a} + {b}?", a + b) for a in range(2, 41) for b in range(2, 41)]
    rows += [(f"What is {a} - {b}?", a - b) for a in range(2, 41) for b in range(2, a + 1)]
    random.Random(0).shuffle(rows)
    for name, part in (("test", rows[:400]), ("train", rows[400:])):
        with open(os.path.join(folder, name + ".jsonl"), "w", encoding="utf-8") as out:
            for question, answer in part:
                print(json.dumps({"question": question, "answer": str(answer)}), file=out)


if __name__ == "__main__":
    main()
