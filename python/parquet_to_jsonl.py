#!/usr/bin/env python3
"""Turns a Parquet data set into the JSON lines that `env.train_file` and `env.test_file` name.

    pip install pyarrow==26.0.1
    python3 python/parquet_to_jsonl.py train.parquet train.jsonl

A row keeps its columns. The file appears complete or not at all. Without its name the lines go to standard output,
followed by an empty one: this is how Carnot reads Parquet files.
"""

import argparse
import json
import os
import sys


def rows(source, batch_rows=4096):
    """Each row as a line."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise SystemExit("pyarrow is missing: pip install pyarrow")
    for batch in pyarrow.parquet.ParquetFile(source).iter_batches(batch_size=batch_rows):
        for row in batch.to_pylist():
            yield json.dumps(row, ensure_ascii=False, default=str) + "\n"


def convert(source, target):
    """Writes the file; returns the number of rows."""
    count = 0
    unfinished = target + ".unfinished"
    try:
        with open(unfinished, "w", encoding="utf-8", newline="\n") as out:
            for count, row in enumerate(rows(source), start=1):
                out.write(row)
        os.replace(unfinished, target)
    finally:
        if os.path.exists(unfinished):
            os.remove(unfinished)
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parquet")
    parser.add_argument("jsonl", nargs="?")
    arguments = parser.parse_args()
    if not os.path.exists(arguments.parquet):
        raise SystemExit(f"{arguments.parquet}: does not exist")
    if arguments.jsonl:
        print(f"{convert(arguments.parquet, arguments.jsonl)} rows in {arguments.jsonl}", file=sys.stderr)
        return
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    sys.stdout.writelines(rows(arguments.parquet))
    print()


if __name__ == "__main__":
    main()
