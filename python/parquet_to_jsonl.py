"""Writes the rows of parquet files as JSON lines, for `env: dataset`. Needs pyarrow.

    python3 parquet_to_jsonl.py train-00000.parquet train-00001.parquet train.jsonl
"""

import json
import os
import sys

import pyarrow.parquet


def main(sources, target):
    rows = 0
    with open(target + ".part", "w", encoding="utf-8") as out:
        for source in sources:
            for batch in pyarrow.parquet.ParquetFile(source).iter_batches():
                for row in batch.to_pylist():
                    # Dates and bytes have no JSON of their own.
                    out.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")
                    rows += 1
    os.replace(target + ".part", target)
    print("%d rows in %s" % (rows, target))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1:-1], sys.argv[-1])
