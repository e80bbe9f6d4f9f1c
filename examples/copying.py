#!/usr/bin/env python3
"""Rows that teach a policy with random weights to copy, which it needs to look anything up.

    python3 examples/copying.py TEXT ROWS.jsonl [number of rows]

TEXT is a file, plain or .xz, with words that the policy will read. A row is a prompt of two to fourteen of them at random,
few more often than many, and the same as its answer. docs/sft.md says how to use the rows.
"""
import json
import lzma
import random
import re
import sys


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with (lzma.open if sys.argv[1].endswith(".xz") else open)(sys.argv[1], "rt") as file:
        pieces = sorted(set(re.findall(r"[^\W\d_]{1,7}|\d|[^\w\s]", file.read().lower())))
    rows = int(sys.argv[3]) if len(sys.argv) > 3 else 60000
    draw = random.Random(0)
    with open(sys.argv[2], "w") as out:
        for row in range(rows):
            length = draw.randint(2, 2 + 12 * row // rows)
            text = "".join(draw.choice(pieces) + draw.choice(["", " ", " "]) for _ in range(length)).strip()
            messages = [{"role": role, "content": text} for role in ("user", "assistant")]
            out.write(json.dumps({"messages": messages}) + "\n")


if __name__ == "__main__":
    main()
