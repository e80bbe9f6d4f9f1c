#!/usr/bin/env python3
"""Carnot and its peers on models of real shapes: the same work on the same weights, in turn, in one run.

    python3 -m venv .peers && .peers/bin/pip install -r bench/peers/requirements.txt
    .peers/bin/python bench/peers/models.py                    everything: about 20 minutes on two processors
    .peers/bin/python bench/peers/models.py --only decode      rows whose case has this in its name
    .peers/bin/python bench/peers/models.py --missing          what this processor has no figure of yet
    .peers/bin/python bench/peers/models.py --small --out x    every case with a very small model, to see that it works
    .peers/bin/python bench/peers/models.py --page             only writes the page again

Each side is a process that holds the model and answers requests: build/model_requests_bench, and
bench/peers/model_worker.py with transformers or llama.cpp. First, all sides compute the log-probabilities and entropies
of the same tokens, which are compared with transformers in float32. Then a case's requests go to each side in turn, for
so many rounds; a figure is the median, a ratio the median of the rounds' ratios. Of transformers' attentions, eager and
sdpa, the faster one of the first round counts. What memory and arithmetic give at best is measured in the same run.

Rows are kept by processor in bench/results/models.json, and all of them are written to bench/results/models.md. With
--json, each row is a line on standard output: name, ours, peer, ratio, limit_fraction, peak_mebibytes.
"""
import argparse
import dataclasses
import importlib.util
import json
import math
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import time
from typing import Callable, Optional

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BIG, TINY, SMALLEST = "qwen2.5-0.5b", "qwen2-43m", "qwen2-smallest"
NAMES = {BIG: "0.5 B", TINY: "43 M", SMALLEST: "smallest"}
KNOWN_PROCESSORS = ["AMD EPYC, family 26 (AVX512-BF16)", "Intel Xeon (AMX, AVX512-BF16)"]
MODULES = {"transformers": "transformers", "llama.cpp": "llama_cpp"}
LARGEST_MEAN_ERROR = 0.05  # nats

# ---- limits -------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Machine:
    read: float  # bytes a second
    bfloat16: float  # operations a second
    float32: float


class Work:
    """What passes of a model's shape read and compute at least, in bfloat16."""

    def __init__(self, config):
        hidden, width = config["hidden_size"], config["intermediate_size"]
        head_size = config.get("head_dim", hidden // config["num_attention_heads"])
        queries, keys = head_size * config["num_attention_heads"], head_size * config["num_key_value_heads"]
        self.layers = config["num_hidden_layers"]
        self.blocks = self.layers * (2 * hidden * queries + 2 * hidden * keys + 3 * hidden * width)
        self.head = config["vocab_size"] * hidden
        self.queries = queries
        self.cached_bytes = 2 * self.layers * keys * 2  # of a position

    def decode_seconds(self, machine, sequences, context, distinct=None):
        """One step; `distinct` positions of the cache are read, or all of each sequence."""
        weights = self.blocks + self.head
        read = 2 * weights + self.cached_bytes * (sequences * context if distinct is None else distinct)
        computed = 2 * weights * sequences + 4 * self.layers * self.queries * sequences * context
        return max(read / machine.read, computed / machine.bfloat16)

    def prefill_seconds(self, machine, sequences, length):
        computed = 2 * self.blocks * sequences * length + 2 * self.layers * self.queries * sequences * length**2
        return max(2 * self.blocks / machine.read, (computed + 2 * self.head * sequences) / machine.bfloat16)

    def answers_seconds(self, machine, prompt, answers, tokens):
        steps = (self.decode_seconds(machine, answers, prompt + t, prompt + answers * t) for t in range(1, tokens))
        return self.prefill_seconds(machine, 1, prompt) + sum(steps)

    def train_seconds(self, machine, lengths, counted):
        """The head's products are 8: its logits are computed again for the gradient."""
        tokens, squares = sum(lengths), sum(n * n for n in lengths)
        heads = sum(int(counted * n) for n in lengths)
        computed = 6 * self.blocks * tokens + 6 * self.layers * self.queries * squares + 8 * self.head * heads
        return computed / machine.bfloat16

    def statistics_seconds(self, machine, tokens, gradient):
        return (8 if gradient else 2) * self.head * tokens / machine.bfloat16


# ---- cases --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Figure:
    """Of an answer's `key`, seconds, it is `amount` over them in `unit` (or the value itself, where that is 0)."""

    name: str
    key: str
    amount: float
    unit: str = "tokens/s"
    limit: Optional[Callable] = None  # of Work and Machine: the seconds at best
    ratios: dict = dataclasses.field(default_factory=dict)  # what is aimed at, by peer
    fraction: Optional[float] = None  # of the limit, aimed at
    most: Optional[float] = None  # of the value, aimed at

    def value(self, answer):
        return self.amount / answer[self.key] if self.amount else answer[self.key]


@dataclasses.dataclass
class Case:
    shape: str
    request: dict
    figures: list
    peers: list = dataclasses.field(default_factory=lambda: ["transformers"])
    rounds: int = 5
    dtype: str = "bfloat16"
    fresh: bool = False  # Carnot's process is a new one, and there is one round


def ragged(count, mean, longest):
    """Lengths around a mean as trajectories have them: many short ones, a few long ones."""
    draws = random.Random(0)
    return [min(longest, max(16, int(0.8 * mean * math.exp(0.67 * draws.gauss(0, 1))))) for _ in range(count)]


def decode_case(shape, batch, prompt, tokens, ratios, fraction, prefill_fraction=None, rounds=3):
    what = f"{NAMES[shape]}, batch {batch}"
    figures = [Figure(f"decode, {what}", "decode_seconds", batch * tokens, ratios=ratios, fraction=fraction,
                      limit=lambda w, m: tokens * w.decode_seconds(m, batch, prompt + tokens / 2))]
    if prefill_fraction:
        figures.append(Figure(f"prefill of {prompt}, {what}", "prefill_seconds", batch * prompt,
                              ratios={"transformers": 1, "llama.cpp": 1}, fraction=prefill_fraction,
                              limit=lambda w, m: w.prefill_seconds(m, batch, prompt)))
    return Case(shape, {"do": "decode", "batch": batch, "prompt": prompt, "tokens": tokens}, figures,
                ["transformers", "llama.cpp"], rounds)


def answers_case(shape, prompt, answers, tokens, ratios, rounds):
    name = f"1 prompt of {prompt}, {answers} answers of {tokens}, {NAMES[shape]}"
    figure = Figure(name, "seconds", answers * tokens, ratios=ratios,
                    limit=lambda w, m: w.answers_seconds(m, prompt, answers, tokens))
    return Case(shape, {"do": "answers", "prompt": prompt, "answers": answers, "tokens": tokens}, [figure],
                ["transformers", "llama.cpp"], rounds)


def train_case(shape, kind, lengths, counted, sequences, ratio, fraction, rounds, micro_batch=1024):
    figure = Figure(f"training, {NAMES[shape]}, {kind}", "seconds", sum(lengths), ratios={"transformers": ratio},
                    fraction=fraction, limit=lambda w, m: w.train_seconds(m, lengths, counted))
    request = {"do": "train", "lengths": lengths, "counted": counted, "micro_batch": micro_batch,
               "sequences": sequences}
    return Case(shape, request, [figure], rounds=rounds)


def statistics_case(shape, tokens, gradient, clamp, ratios, fraction):
    name = ("clamped entropy" if clamp else "token statistics") + (" with gradient" if gradient else "")
    figure = Figure(f"{name}, {NAMES[shape]}", "seconds", tokens, ratios=ratios, fraction=fraction,
                    limit=lambda w, m: w.statistics_seconds(m, tokens, gradient))
    return Case(shape, {"do": "statistics", "tokens": tokens, "gradient": gradient, "clamp": clamp}, [figure])


def memory_case(shape, tokens, gradient):
    name = "memory of token statistics" + (" with gradient" if gradient else "")
    figure = Figure(f"{name}, {NAMES[shape]}", "beyond_mebibytes", 0, "MiB", most=64)
    return Case(shape, {"do": "statistics", "tokens": tokens, "gradient": gradient, "clamp": 0}, [figure], [],
                fresh=True)


def product_case(shape, rows):
    figure = Figure(f"product in float32, {rows} x 896 x 4864", "seconds", 2e-9 * rows * 896 * 4864, "GFLOP/s",
                    limit=lambda w, m: 2 * rows * 896 * 4864 / m.float32, ratios={"transformers": 1})
    return Case(shape, {"do": "product", "rows": rows, "depth": 896, "columns": 4864}, [figure])


def gain_case(shape, trajectories, turns, tokens):
    figure = Figure(f"information gain, {NAMES[shape]}, share of the rollout's time", "gain_percent", 0, "%", most=3)
    request = {"do": "information_gain", "trajectories": trajectories, "turns": turns, "tokens": tokens, "answer": 16}
    return Case(shape, request, [figure], [], rounds=1)


def all_cases():
    both = {"transformers": 1, "llama.cpp": 1}
    return [
        decode_case(BIG, 1, 256, 32, both, 0.85, 0.75),
        decode_case(BIG, 8, 256, 32, both, 0.75, 0.75),
        decode_case(BIG, 32, 256, 16, {"transformers": 1.5, "llama.cpp": 1.5}, 0.70, 0.75),
        answers_case(BIG, 256, 32, 32, {"transformers": 5, "llama.cpp": 1.5}, 2),
        train_case(BIG, "4 x 256", [256] * 4, 1.0, 4, 1.5, 0.60, 3),
        train_case(BIG, "ragged", ragged(8, 220, 768), 0.4, 4, 3, None, 1),
        statistics_case(BIG, 512, False, 0, {}, 0.90),
        statistics_case(BIG, 512, True, 0, {}, 0.65),
        statistics_case(BIG, 256, False, 0.3, {"transformers": 8}, None),
        statistics_case(BIG, 256, True, 0.3, {"transformers": 4}, None),
        memory_case(BIG, 2048, False),
        memory_case(BIG, 512, True),
        product_case(BIG, 256),
        product_case(BIG, 2048),
        decode_case(TINY, 64, 128, 32, {"transformers": 15, "llama.cpp": 2}, 0.55),
        answers_case(TINY, 256, 32, 32, {"transformers": 5, "llama.cpp": 1.5}, 3),
        train_case(TINY, "16 x 128", [128] * 16, 1.0, 16, 1.5, 0.50, 3, 2048),
        train_case(TINY, "ragged", ragged(32, 300, 1024), 0.4, 4, 3, None, 2, 2048),
        gain_case(TINY, 32, 5, 100),
    ]


def made_small(case):
    """The same case with the smallest shape and sizes of a few tokens."""
    request = {k: min(v, 40) if k in ("prompt", "tokens", "rows") else v for k, v in case.request.items()}
    if "lengths" in request:
        request["lengths"] = [n // 8 for n in request["lengths"]]
    return dataclasses.replace(case, shape=SMALLEST, request=request, rounds=2)


# ---- sides --------------------------------------------------------------------------------------------------------


class Side:
    """A process that answers requests about one model."""

    def __init__(self, name, command, environment, processor_time):
        self.name, self.processor_time = name, processor_time
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL, env=os.environ | environment)
        self.about = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with status {self.process.wait()}")
        return json.loads(line)

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.read()
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        if self.processor_time:
            answer |= {k.replace("processor_", ""): v for k, v in answer.items() if k.endswith("processor_seconds")}
        if "gain_seconds" in answer:
            answer["gain_percent"] = 100 * answer["gain_seconds"] / answer["rollout_seconds"]
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Sides:
    """The processes of one shape, started when they are first asked."""

    def __init__(self, options, shape):
        self.options, self.shape = options, shape
        self.folder = pathlib.Path(options.models) / shape
        self.started = {}
        self.machine = None
        if not (self.folder / "config.json").exists():
            say(f"random weights of {shape} into {self.folder}")
            shape_file = ROOT / "bench" / "shapes" / f"{shape}.json"
            subprocess.run([sys.executable, HERE / "model_worker.py", "make", shape_file, self.folder], check=True)

    def start(self, name):
        threads = str(self.options.threads)
        if name == "Carnot":
            program = pathlib.Path(self.options.build) / "model_requests_bench"
            return Side(name, [program, self.folder, "--threads", threads], {}, self.options.processor_time)
        return Side(name, [sys.executable, HERE / "model_worker.py", name, self.folder], {"OMP_NUM_THREADS": threads},
                    self.options.processor_time)

    def __getitem__(self, name):
        if name not in self.started:
            self.started[name] = self.start(name)
        return self.started[name]

    def measure_machine(self):
        """The best of all times in this run."""
        found = self["Carnot"].ask({"do": "limits"})
        now = Machine(1e9 * found["read_gigabytes"], 1e9 * found["bfloat16_gigaflops"],
                      1e9 * found["float32_gigaflops"])
        old = self.machine or now
        self.machine = Machine(max(old.read, now.read), max(old.bfloat16, now.bfloat16), max(old.float32, now.float32))

    def close(self):
        for side in self.started.values():
            side.close()


def say(text):
    print(text, file=sys.stderr, flush=True)


def mean_difference(a, b):
    return sum(abs(x - y) for x, y in zip(a, b)) / len(a)


def check_outputs(sides, peers):
    """The mean error of each side's log-probabilities and entropies in nats; raises where one is too large."""
    vocabulary = json.loads((sides.folder / "config.json").read_text())["vocab_size"]
    draws = random.Random(1)
    request = {"do": "log_probs", "tokens": [draws.randrange(vocabulary) for _ in range(128)]}
    exact = sides["transformers"].ask(request | {"float32": True})
    errors = {}
    for name in ["Carnot"] + peers:
        answer = sides[name].ask(request)
        errors[name] = max(mean_difference(answer[key], exact[key]) for key in ("log_prob", "entropy"))
        say(f"  {name}: log-probabilities and entropies differ from float32 by {errors[name]:.1g} nats on average")
        if not errors[name] < LARGEST_MEAN_ERROR:
            raise RuntimeError(f"{name} does not compute this model: {errors[name]:.3g} nats")
    return errors


# ---- measuring ----------------------------------------------------------------------------------------------------


def best_variants(answers, figures):
    """Of {variant: answer}, those that are the fastest in some figure."""
    return {min(answers, key=lambda v: answers[v][figure.key]) for figure in figures}


def measure(case, sides, rounds):
    """{side: an answer for each round}, each key the least of the side's variants."""
    names = ["Carnot"] + case.peers
    variants = {name: [{}] for name in names}
    if case.request["do"] in ("decode", "answers", "train") and "transformers" in names:
        variants["transformers"] = [{"attention": "eager"}, {"attention": "sdpa"}]
    answers = {name: [] for name in names}
    for round_number in range(rounds):
        for name in names:
            tried = {json.dumps(v): sides[name].ask(case.request | v) for v in variants[name]}
            if round_number == 0 and len(tried) > 1:
                variants[name] = [json.loads(v) for v in sorted(best_variants(tried, case.figures))]
            best = {figure.key: min(a[figure.key] for a in tried.values()) for figure in case.figures}
            best["peak_mebibytes"] = max(a["peak_mebibytes"] for a in tried.values())
            answers[name].append(best)
    return answers, {name: v for name, v in variants.items() if v != [{}]}


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


def rows_of(case, answers, work, machine):
    for figure in case.figures:
        seconds = figure.limit(work, machine) if figure.limit else None
        for peer in case.peers or [None]:
            yield row_of(figure, peer, answers["Carnot"], answers[peer] if peer else None, seconds)


def measure_case(case, sides, options):
    rounds = 1 if case.fresh else options.rounds or case.rounds
    if case.fresh:
        fresh = Sides(options, sides.shape)
        answers, variants = measure(case, fresh, rounds)
        fresh.close()
    else:
        sides["Carnot"].ask(case.request)  # packs the weights, and fills caches
        sides.measure_machine()
        answers, variants = measure(case, sides, rounds)
    work = Work(json.loads((sides.folder / "config.json").read_text()))
    for row in rows_of(case, answers, work, sides.machine):
        yield row | {"rounds": rounds, "variants": variants}


# ---- results ------------------------------------------------------------------------------------------------------


def processor(cpuinfo):
    """The processor's line, and what of it matters to products in bfloat16."""
    fields = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", cpuinfo, re.MULTILINE))
    flags = fields.get("flags", "").split()
    sets = [name for flag, name in (("amx_bf16", "AMX"), ("avx512_bf16", "AVX512-BF16")) if flag in flags]
    name = re.sub(r"\(R\)|\bCPU\b|\bProcessor\b|@.*", " ", fields.get("model name", "unknown processor"))
    family = f", family {fields['cpu family']}" if name.startswith("AMD") else ""
    return f"{' '.join(name.split())}{family} ({', '.join(sets) or 'no bfloat16 products'})"


def load_average():
    return os.getloadavg()[0]


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
    lines = ["# Models of real shapes beside transformers and llama.cpp", "",
             "Written by `bench/peers/models.py`, which says how it measures. Figures of a processor are comparable with"
             " each other only; targets that were missed are bold.", ""]
    for name in KNOWN_PROCESSORS + [name for name in results if name not in KNOWN_PROCESSORS]:
        lines += [f"## {name}", ""]
        if name not in results:
            lines += ["Not measured.", ""]
            continue
        found = results[name]
        lines += [f"{found['about']}", ""] + table(found["rows"]) + [""]
    return "\n".join(lines) + notes


class Results:
    """bench/results/models.json, and the page beside it. What follows the page's line of notes stays as it is."""

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
        names = [row_name(f, peer) for c in all_cases() for f in c.figures for peer in c.peers or [None]]
        order = {name: place for place, name in enumerate(names)}
        here["rows"] = dict(sorted(here["rows"].items(), key=lambda r: order.get(r[0], len(order))))
        self.write()

    def write(self):
        notes = self.NOTES
        if self.page_file.exists() and self.NOTES in self.page_file.read_text():
            notes = self.NOTES + self.page_file.read_text().split(self.NOTES, 1)[1]
        self.file.write_text(json.dumps(self.all, indent=1) + "\n")
        self.page_file.write_text(page(self.all, notes))


def installed(peers):
    return [peer for peer in peers if importlib.util.find_spec(MODULES[peer])]


def row_name(figure, peer):
    return f"{figure.name} [{figure.unit}]" + (f", against {peer}" if peer else "")


def with_missing_peers(case, rows):
    """The case with the peers that have no figure yet; nothing where all have."""
    missing = [p for p in case.peers or [None] if any(row_name(f, p) not in rows for f in case.figures)]
    return dataclasses.replace(case, peers=[p for p in missing if p]) if missing else None


def wanted_cases(options, rows):
    cases = [made_small(c) for c in all_cases()] if options.small else all_cases()
    if options.only:
        cases = [c for c in cases if any(options.only in f.name for f in c.figures)]
    cases = [dataclasses.replace(c, peers=installed(c.peers)) for c in cases if installed(c.peers) or not c.peers]
    if options.missing:
        cases = [c for c in (with_missing_peers(c, rows) for c in cases) if c]
    return cases


def show(row, as_json):
    if as_json:
        print(json.dumps({key: row[key] for key in ("name", "ours", "peer", "ratio", "limit_fraction",
                                                    "peak_mebibytes")}), flush=True)
        return
    peer = f"  peer {number(row['peer'])}, ratio {row['ratio']:.2f}" if row["ratio"] else ""
    share = f"  {row['limit_fraction']:.2f} of the limit" if row["limit_fraction"] else ""
    print(f"{row['name']}: {number(row['ours'])}{peer}{share}", flush=True)


def about(sides, options, errors):
    versions = ", ".join(sides[name].about["version"] for name in errors if name != "Carnot")
    machine = sides.machine
    how = "one thread each, the processor's time" if options.processor_time else f"{options.threads} threads each"
    return (f"{os.cpu_count()} processors, {how}, kernels {sides['Carnot'].about['kernels']}; {versions}."
            f" At best {machine.read / 1e9:.1f} GB/s read, {machine.bfloat16 / 1e9:,.0f} GFLOP/s in bfloat16"
            f" and {machine.float32 / 1e9:,.0f} in float32. Load average before the last case: {options.load:.1f}.")


def run(options):
    results = Results(options.out)
    if options.page:
        return results.write()
    cases = wanted_cases(options, results.rows())
    for shape in dict.fromkeys(case.shape for case in cases):
        sides = Sides(options, shape)
        say(f"{shape}:")
        peers = sorted({peer for case in cases if case.shape == shape for peer in case.peers}, reverse=True)
        errors = check_outputs(sides, peers) if "transformers" in installed(MODULES) else {}
        for case in cases:
            if case.shape != shape:
                continue
            options.load = load_average()
            begin = time.perf_counter()
            try:
                for row in measure_case(case, sides, options):
                    show(row, options.json)
                    results.add(row | {"load": options.load, "errors": errors}, about(sides, options, errors))
            except RuntimeError as error:  # the other cases may work
                say(f"  {case.figures[0].name}: {error}")
                sides.close()
                sides = Sides(options, shape)
            say(f"  {case.figures[0].name}: {time.perf_counter() - begin:.0f} s")
        sides.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build", help="where model_requests_bench is")
    parser.add_argument("--models", default=ROOT / "build" / "models", help="where random weights are written")
    parser.add_argument("--out", default=ROOT / "bench" / "results" / "models.md")
    parser.add_argument("--only", default="", help="cases with this in a figure's name")
    parser.add_argument("--missing", action="store_true", help="cases that have no figure yet")
    parser.add_argument("--rounds", type=int, default=0, help="instead of each case's own")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--processor-time", action="store_true",
                        help="of a busy machine: the processor's time, with one thread")
    parser.add_argument("--small", action="store_true", help="a very small model, to see that it works")
    parser.add_argument("--json", action="store_true", help="a JSON object for each row")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    options.threads = 1 if options.processor_time else options.threads
    if not options.page and not (pathlib.Path(options.build) / "model_requests_bench").exists():
        sys.exit(f"{options.build}/model_requests_bench is not there: cmake --build build --target model_requests_bench")
    run(options)


if __name__ == "__main__":
    main()
