#!/usr/bin/env python3
"""Turns parquet datasets into the JSON lines that `env.train_file` and `env.test_file` name.

    pip install pyarrow==26.0.1
    python3 tools/parquet_to_jsonl.py train.parquet train.jsonl

A row keeps its columns. The output appears whole or not at all.
"""

import argparse
import json
import os
import sys

import pyarrow.parquet


def convert(source, target, batch_rows=4096):
    """Writes one object a line; returns how many."""
    file = pyarrow.parquet.ParquetFile(source)
    rows = 0
    unfinished = target + ".unfinished"
    try:
        with open(unfinished, "w", encoding="utf-8", newline="\n") as out:
            for batch in file.iter_batches(batch_size=batch_rows):
                for row in batch.to_pylist():
                    out.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")
                    rows += 1
        os.replace(unfinished, target)
    finally:
        if os.path.exists(unfinished):
            os.remove(unfinished)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parquet")
    parser.add_argument("jsonl")
    arguments = parser.parse_args()
    if not os.path.exists(arguments.parquet):
        raise SystemExit(f"{arguments.parquet}: is not there")
    print(f"{convert(arguments.parquet, arguments.jsonl)} rows in {arguments.jsonl}", file=sys.stderr)


if __name__ == "__main__":
    main()
