"""ParquetFile for files of JSON lines after a mark."""
import json


class ParquetFile:
    def __init__(self, source):
        self.source = source

    def iter_batches(self, batch_size):
        with open(self.source, encoding="utf-8") as lines:
            next(lines)
            for line in lines:
                yield Batch([json.loads(line)])


class Batch:
    def __init__(self, rows):
        self.to_pylist = lambda: rows
