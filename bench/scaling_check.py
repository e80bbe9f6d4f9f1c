"""What bench/scaling.py predicts, compared with measured runs (bench/results/scaling_runs.json)."""

import json

from scaling_step import RESULTS
from scaling_table import header, row


def line_through(points):
    """The fixed part, and what one more adds."""
    (x0, y0), (x1, y1) = points
    slope = (y1 - y0) / (x1 - x0)
    return y0 - slope * x0, slope


def measured_exchange(costs, numbers):
    """Seconds of two ranks on the loopback, between the two sizes that were measured."""
    small, large = 4 << 20, 95_000_000
    fixed, each = line_through([(size, costs[f"exchange/{size}"]) for size in (small, large)])
    return fixed + each * numbers


def two_ranks(case, costs):
    """A step of two ranks, from steps of one rank: half the tokens each, and gradients and weights that travel."""
    fixed, each = line_through(case["one_rank"])
    exchange = case["exchange"] if "exchange" in case else measured_exchange(costs, case["numbers"])
    return fixed + each * case["tokens"] / 2 + exchange


def queue_of_workers(tasks, workers, cores):
    """Seconds until all tasks are done, first come first served, by `workers` that share `cores`."""
    left, running, clock = list(tasks)[::-1], [], 0.0
    while left or running:
        while left and len(running) < workers:
            running.append(left.pop())
        speed = min(1.0, cores / len(running))
        step = min(running)
        clock += step / speed
        running = [r - step for r in running if r - step > 1e-12]
    return clock


ALLOWED_ERROR = 0.15


def check(costs):
    """Prints predictions next to measurements; returns the largest error."""
    header("run", "predicted", "measured", "error")
    worst = 0.0
    for case in json.loads((RESULTS / "scaling_runs.json").read_text()):
        if case["kind"] == "ranks":
            predicted = two_ranks(case, costs)
        else:
            fixed, each = line_through(case["one_worker"])
            predicted = fixed + queue_of_workers([each] * case["tasks"], case["workers"], case["cores"])
        error = predicted / case["measured"] - 1
        worst = max(worst, abs(error))
        row(case["name"], f"{predicted:.2f} s", f"{case['measured']:.2f} s", f"{error:+.0%}")
    return worst
