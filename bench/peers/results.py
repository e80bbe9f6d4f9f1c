"""Rows of figures, by processor: the JSON file that keeps them, and the page that shows them."""
import json
import pathlib
import re
import statistics

import cases

KNOWN_PROCESSORS = ["AMD EPYC, family 26 (AVX512-BF16)", "Intel Xeon (AMX, AVX512-BF16)"]


def row_name(figure, peer):
    return f"{figure.name} [{figure.unit}]" + (f", against {peer}" if peer else "")


def row_of(figure, peer, ours, theirs, limit_seconds):
    """A row from the rounds' answers of Carnot and of a peer (None: nothing else was measured)."""
    values = [figure.value(a) for a in ours]
    row = {"name": row_name(figure, peer), "ours": statistics.median(values), "peer": None, "ratio": None,
           "limit_fraction": None, "peak_mebibytes": max(a["peak_mebibytes"] for a in ours)}
    if theirs:
        peers = [figure.value(a) for a in theirs]
        ratios = [a / b for a, b in zip(values, peers)]
        row |= {"peer": statistics.median(peers), "ratio": statistics.median(ratios), "least_ratio": min(ratios),
                "most_ratio": max(ratios), "peer_peak_mebibytes": max(a["peak_mebibytes"] for a in theirs),
                "ratio_target": figure.ratios.get(peer)}
    if limit_seconds:
        row["limit_fraction"] = limit_seconds / statistics.median(a[figure.key] for a in ours)
        row["fraction_target"] = figure.fraction
    if figure.most is not None:
        row["most_target"] = figure.most
    return row


def processor(cpuinfo):
    """The processor's name, and its features for products in bfloat16."""
    fields = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", cpuinfo, re.MULTILINE))
    flags = fields.get("flags", "").split()
    sets = [name for flag, name in (("amx_bf16", "AMX"), ("avx512_bf16", "AVX512-BF16")) if flag in flags]
    name = re.sub(r"\(R\)|\bCPU\b|\bProcessor\b|@.*", " ", fields.get("model name", "unknown processor"))
    family = f", family {fields['cpu family']}" if name.startswith("AMD") else ""
    return f"{' '.join(name.split())}{family} ({', '.join(sets) or 'no bfloat16 products'})"


def number(value):
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def with_target(value, target, form):
    if value is None:
        return ""
    if target is None:
        return form(value)
    met = value >= target - 0.005
    return form(value) + (f" (aim {target:g})" if met else f" (**aim {target:g}**)")


def table(rows):
    lines = ["| what | Carnot | peer | ratio | rounds' ratios | share of the limit | MiB |",
             "|---|---:|---:|---:|---|---:|---:|"]
    for row in rows.values():
        ours = number(row["ours"])
        if "most_target" in row:
            met = row["ours"] <= row["most_target"]
            ours += f" (aim {row['most_target']:g} at most)" if met else f" (**aim {row['most_target']:g} at most**)"
        spread = f"{row['least_ratio']:.2f} to {row['most_ratio']:.2f}" if row["ratio"] else ""
        lines.append(f"| {row['name']} | {ours} | {number(row['peer'])} |"
                     f" {with_target(row['ratio'], row.get('ratio_target'), '{:.2f}'.format)} | {spread} |"
                     f" {with_target(row['limit_fraction'], row.get('fraction_target'), '{:.2f}'.format)} |"
                     f" {number(row['peak_mebibytes'])} |")
    return lines


def page(results, notes):
    lines = ["# Models of real shapes compared with transformers and llama.cpp", "",
             "Written by `bench/peers/models.py`, which says how it measures. Figures of a processor are comparable"
             " with each other only; targets that were missed are bold.", ""]
    for name in KNOWN_PROCESSORS + [name for name in results if name not in KNOWN_PROCESSORS]:
        lines += [f"## {name}", ""]
        if name not in results:
            lines += ["Not measured.", ""]
            continue
        found = results[name]
        lines += [f"{found['about']}", ""] + table(found["rows"]) + [""]
    return "\n".join(lines) + notes


class Results:
    """bench/results/models.json, and the page next to it. What follows the page's line of notes is kept."""

    NOTES = "\n<!-- what follows is written by hand -->\n"

    def __init__(self, out):
        self.page_file = pathlib.Path(out)
        self.file = self.page_file.with_suffix(".json")
        self.all = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.here = processor(pathlib.Path("/proc/cpuinfo").read_text())

    def rows(self):
        return self.all.get(self.here, {}).get("rows", {})

    def add(self, row, about=""):
        """`about` says how this processor's rows were measured; empty: as those before."""
        here = self.all.setdefault(self.here, {"about": "", "rows": {}})
        here["about"] = about or here["about"]
        here["rows"][row["name"]] = row
        names = [row_name(f, peer) for c in cases.all_cases() for f in c.figures for peer in c.peers or [None]]
        order = {name: place for place, name in enumerate(names)}
        here["rows"] = dict(sorted(here["rows"].items(), key=lambda r: order.get(r[0], len(order))))
        self.write()

    def write(self):
        notes = self.NOTES
        if self.page_file.exists() and self.NOTES in self.page_file.read_text():
            notes = self.NOTES + self.page_file.read_text().split(self.NOTES, 1)[1]
        self.file.write_text(json.dumps(self.all, indent=1) + "\n")
        self.page_file.write_text(page(self.all, notes))
