#!/usr/bin/env python3
"""Writes the rows that tools/gpu_check/bench measured as a page.

    tools/gpu_check/table.py ROWS.jsonl PAGE.md CELLS_LEFT
"""
import datetime
import json
import pathlib
import sys


def machine():
    import torch

    if not torch.cuda.is_available():
        return "no GPU"
    name = torch.cuda.get_device_name(0)
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    return f"{name}, {processors} multiprocessors, LibTorch {torch.__version__}, CUDA {torch.version.cuda}"


def number(value):
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def line(row, peers):
    if "failed" in row:
        return f"| `{row['cell']}` | failed | | | | {row['failed'].replace('|', '/')} |"
    peer = peers.get(row["cell"])
    ratio = ""
    if peer and "value" in peer:
        better = row["value"] / peer["value"] if row["better"] == "higher" else peer["value"] / row["value"]
        ratio = f"{number(peer['value'])} ({better:.2f} x)"
    fraction = f"{row['limit_fraction']:.2f}" if "limit_fraction" in row else ""
    return (f"| `{row['cell']}` | {number(row['value'])} {row['unit']} | {fraction} | {ratio} | "
            f"{number(row['peak_mebibytes'])} | {row['note']} |")


def main(source, page, left):
    rows = [json.loads(text) for text in pathlib.Path(source).read_text().splitlines() if text]
    # A peer's row names the cell that it is compared with.
    peers = {row["peer_of"]: row for row in rows if "peer_of" in row}
    for row in rows:
        if row["cell"].endswith("_by_operators"):
            peers.setdefault(row["cell"].removesuffix("_by_operators"), row)
    sources = pathlib.Path("SOURCES")
    lines = [
        "# On a GPU",
        "",
        f"{machine()}. Measured by `tools/gpu_check/bench` on {datetime.date.today()}"
        + (f", sources {sources.read_text().strip()}" if sources.exists() else "") + ".",
        "",
        "The limit is what the copy and the product of this page allow (docs/gpu.md). Peers are transformers if a row",
        "names it, else the same passes by LibTorch's operators; the ratio is above 1 where Carnot is faster.",
        "",
        "| cell | Carnot | of the limit | peer (ratio) | MiB | |",
        "|---|---:|---:|---:|---:|---|",
    ]
    lines += [line(row, peers) for row in rows if "peer_of" not in row]
    named = [row for row in rows if "peer_of" in row]
    if named:
        lines += ["", "## Peers", "", "| cell | | |", "|---|---:|---|"]
        for row in named:
            value = f"{number(row['value'])} {row['unit']}" if "value" in row else "failed"
            lines.append(f"| `{row['cell']}` | {value} | {row.get('note', row.get('failed', '')).replace('|', '/')} |")
    if int(left):
        lines += ["", f"Not measured yet: {left} cells."]
    pathlib.Path(page).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
