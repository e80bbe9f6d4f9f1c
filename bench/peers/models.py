#!/usr/bin/env python3
"""Carnot and its peers on models of real shapes: the same work on the same weights, alternating, in one run.

    python3 -m venv .peers && .peers/bin/pip install -r bench/peers/requirements.txt
    .peers/bin/python bench/peers/models.py                    everything: about 20 minutes on two processors
    .peers/bin/python bench/peers/models.py --only decode      only cases with this in their name
    .peers/bin/python bench/peers/models.py --missing          only cases without a figure of this processor
    .peers/bin/python bench/peers/models.py --small --out x    every case with a very small model, to see that it works
    .peers/bin/python bench/peers/models.py --page             only rewrites the page

Each side is a process that holds the model and answers requests: build/model_requests_bench, and
bench/peers/model_worker.py with transformers or llama.cpp. First, all sides compute the log-probabilities and entropies
of the same tokens, which are compared with transformers in float32. Then a case's requests go to each side in turn, for
several rounds; a figure is the median, a ratio the median of the rounds' ratios. Of transformers' attentions, eager and
sdpa, the faster one of the first round counts. The best rates of memory and arithmetic are measured in the same run.

Rows are kept by processor in bench/results/models.json, and all of them are written to bench/results/models.md. With
--json, each row is a line on standard output: name, ours, peer, ratio, limit_fraction, peak_mebibytes.
"""
import argparse
import dataclasses
import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys
import time

import cases
import limits
import results

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MODULES = {"transformers": "transformers", "llama.cpp": "llama_cpp"}
LARGEST_MEAN_ERROR = 0.05  # nats

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
    """The processes of one shape, started at their first request."""

    def __init__(self, options, shape):
        self.options, self.shape = options, shape
        self.folder = pathlib.Path(options.models) / shape
        self.shape_file = ROOT / "bench" / "shapes" / f"{shape}.json"
        self.started = {}
        self.machine = None
        if not pathlib.Path(f"{self.folder}.gguf").exists():  # written last
            say(f"random weights of {shape} into {self.folder}")
            program = pathlib.Path(options.build) / "carnot"
            subprocess.run([sys.executable, HERE / "random_folder.py", self.shape_file, self.folder, program], check=True)

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
        now = limits.Machine(1e9 * found["read_gigabytes"], 1e9 * found["bfloat16_gigaflops"],
                      1e9 * found["float32_gigaflops"])
        old = self.machine or now
        self.machine = limits.Machine(max(old.read, now.read), max(old.bfloat16, now.bfloat16),
                                      max(old.float32, now.float32))

    def close(self):
        for side in self.started.values():
            side.close()


def say(text):
    print(text, file=sys.stderr, flush=True)


def mean_difference(a, b):
    return sum(abs(x - y) for x, y in zip(a, b)) / len(a)


def check_outputs(sides, peers):
    """The mean error of each side's log-probabilities and entropies in nats; raises if one is too large."""
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
    """The variants of {variant: answer} that are the fastest in some figure."""
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


def rows_of(case, answers, work, machine):
    for figure in case.figures:
        seconds = figure.limit(work, machine) if figure.limit and machine else None
        for peer in case.peers or [None]:
            yield results.row_of(figure, peer, answers["Carnot"], answers[peer] if peer else None, seconds)


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
    work = limits.Work(json.loads(sides.shape_file.read_text()))
    # Limits are times on the wall.
    machine = None if options.processor_time else sides.machine
    for row in rows_of(case, answers, work, machine):
        yield row | {"rounds": rounds, "variants": variants}


def installed(peers):
    return [peer for peer in peers if importlib.util.find_spec(MODULES[peer])]


def with_missing_peers(case, rows):
    """The case with the peers that have no figure yet; None if all have."""
    missing = [p for p in case.peers or [None] if any(results.row_name(f, p) not in rows for f in case.figures)]
    return dataclasses.replace(case, peers=[p for p in missing if p]) if missing else None


def wanted_cases(options, rows):
    wanted = [cases.made_small(c) for c in cases.all_cases()] if options.small else cases.all_cases()
    if options.only:
        wanted = [c for c in wanted if any(options.only in f.name for f in c.figures)]
    wanted = [dataclasses.replace(c, peers=installed(c.peers)) for c in wanted if installed(c.peers) or not c.peers]
    if options.missing:
        wanted = [c for c in (with_missing_peers(c, rows) for c in wanted) if c]
    return wanted


def show(row, as_json):
    if as_json:
        print(json.dumps({key: row[key] for key in ("name", "ours", "peer", "ratio", "limit_fraction",
                                                    "peak_mebibytes")}), flush=True)
        return
    peer = f"  peer {results.number(row['peer'])}, ratio {row['ratio']:.2f}" if row["ratio"] else ""
    share = f"  {row['limit_fraction']:.2f} of the limit" if row["limit_fraction"] else ""
    print(f"{row['name']}: {results.number(row['ours'])}{peer}{share}", flush=True)


def about(sides, options, errors):
    versions = ", ".join(sides[name].about["version"] for name in errors if name != "Carnot")
    machine = sides.machine
    how = "one thread each, the processor's time" if options.processor_time else f"{options.threads} threads each"
    return (f"{os.cpu_count()} processors, {how}, kernels {sides['Carnot'].about['kernels']}; {versions}."
            f" At best {machine.read / 1e9:.1f} GB/s read, {machine.bfloat16 / 1e9:,.0f} GFLOP/s in bfloat16"
            f" and {machine.float32 / 1e9:,.0f} in float32. Load average before the last case: {options.load:.1f}.")


def run(options):
    kept = results.Results(options.out)
    if options.page:
        return kept.write()
    wanted = wanted_cases(options, kept.rows())
    for shape in dict.fromkeys(case.shape for case in wanted):
        sides = Sides(options, shape)
        say(f"{shape}:")
        peers = sorted({peer for case in wanted if case.shape == shape for peer in case.peers}, reverse=True)
        errors = check_outputs(sides, peers) if "transformers" in installed(MODULES) else {}
        for case in wanted:
            if case.shape != shape:
                continue
            options.load = os.getloadavg()[0]
            begin = time.perf_counter()
            try:
                for row in measure_case(case, sides, options):
                    show(row, options.json)
                    kept.add(row | {"load": options.load, "errors": errors}, about(sides, options, errors))
            except RuntimeError as error:  # the other cases may succeed
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
    for program in ("carnot", "model_requests_bench"):
        if not options.page and not (pathlib.Path(options.build) / program).exists():
            sys.exit(f"{options.build}/{program} is missing: ./run build {program}")
    run(options)


if __name__ == "__main__":
    main()
