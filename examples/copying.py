#!/usr/bin/env python3
"""Rows that teach a policy with random weights to copy, which it needs to look anything up.

    python3 examples/copying.py TEXT ROWS.jsonl [--rows 60000] [--as-written]

TEXT is a file, plain or .xz, with words that the policy will read. A row is a prompt of two to fourteen of them at random,
few more often than many, and the same as its answer. docs/sft.md says how to use the rows.
"""
import argparse
import json
import lzma
import random
import re

WORDS = r"[^\W\d_]{1,7}|\d|[^\w\s]"
COORDINATES = r"\(\d+, \d+\)"


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("text")
    flags.add_argument("output")
    flags.add_argument("--rows", type=int, default=60000)
    flags.add_argument("--as-written", action="store_true", help="keep capitals, and coordinates such as (1, 3) whole")
    options = flags.parse_args()
    with (lzma.open if options.text.endswith(".xz") else open)(options.text, "rt") as file:
        text = file.read()
    found = re.findall(f"{COORDINATES}|{WORDS}", text) if options.as_written else re.findall(WORDS, text.lower())
    pieces = sorted(set(found))
    draw = random.Random(0)
    with open(options.output, "w") as out:
        for row in range(options.rows):
            length = draw.randint(2, 2 + 12 * row // options.rows)
            text = "".join(draw.choice(pieces) + draw.choice(["", " ", " "]) for _ in range(length)).strip()
            messages = [{"role": role, "content": text} for role in ("user", "assistant")]
            out.write(json.dumps({"messages": messages}) + "\n")


if __name__ == "__main__":
    main()
