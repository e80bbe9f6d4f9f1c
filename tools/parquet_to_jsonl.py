#!/usr/bin/env python3
"""Turns verl's parquet datasets into the JSON lines that `env.train_file` and `env.test_file` name.

    pip install pyarrow==26.0.1
    python3 tools/parquet_to_jsonl.py train.parquet train.jsonl

A row keeps its columns: data_source, prompt, reward_model, extra_info and what else there is. The columns that Carnot needs
are checked before anything is written; the output appears whole or not at all.
"""

import argparse
import json
import os
import sys

import pyarrow.parquet

NEEDED = ("prompt", "reward_model")


def convert(source, target, batch_rows=4096):
    """Writes one object a line; returns how many."""
    file = pyarrow.parquet.ParquetFile(source)
    missing = [name for name in NEEDED if name not in file.schema_arrow.names]
    if missing:
        raise SystemExit(f"{source}: has no column {' and no column '.join(missing)}; it has: "
                         + ", ".join(file.schema_arrow.names))
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
