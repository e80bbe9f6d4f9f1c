#!/usr/bin/env python3
"""A simulation of one training step on 8 to 4,096 GPUs: the source of docs/scaling.md.

    python3 bench/scaling.py            the tables of docs/scaling.md, as Markdown; about a minute
    python3 bench/scaling.py --check    predictions compared with measured runs; takes seconds

The costs of Carnot besides its models are measured (bench/results/scale_costs.json; docs/scaling.md says how).
GPUs and their networks were not measured: ASSUMED in bench/scaling_step.py holds public figures,
each with its source, and guesses. Change a number and run it again.
"""

import random
import sys
from dataclasses import replace

from scaling_check import ALLOWED_ERROR, check
from scaling_step import ASSUMED, MODELS, Assumed, Changes, Costs, episode, length_of, ranks_step, workers_step
from scaling_table import header, number, row

SIZES = [8, 64, 512, 4096]


def print_assumed():
    header("what", "value", "source")
    for name, (value, unit, source) in ASSUMED.items():
        row(name.replace("_", " "), f"{value:.4g} {unit}".strip(), source)


STAGES = ["rollout", "log-probs", "gather", "credit, packing", "update", "exchange", "writing"]


def print_ranks(costs, a, title, groups_of):
    print(f"\n### {title}\n")
    header("model", "GPUs", "episodes", "s a step", *STAGES, "computing", "tokens/s per GPU, relative to 8 GPUs")
    for model in MODELS:
        first = None
        for gpus in SIZES:
            step = ranks_step(model, gpus, groups_of(gpus), costs, a)
            first = first or step["rate"]
            row(model.name, f"{gpus:,}", f"{8 * groups_of(gpus):,}", number(step["seconds"]),
                *[number(step["stages"][s]) for s in STAGES], f"{step['computes']:.0%}", f"{step['rate'] / first:.2f}")


def print_workers(costs, a, title, groups_of):
    print(f"\n### {title}\n")
    header("model", "GPUs", "workers", "s a step", "weights", "rollout", "results", "trainer", "computing")
    for model in MODELS:
        for gpus in SIZES:
            step = workers_step(model, gpus, groups_of(gpus), costs, a)
            row(model.name, f"{gpus:,}", f"{step['workers']:,}", number(step["seconds"]),
                *[number(step["stages"][s]) for s in ["weights", "rollout", "results", "trainer"]],
                f"{step['computes']:.0%}")


MANY_TRAINERS = Changes(many_trainers=True, data_stays=True, all_write=True)
WORTH_NAMING = 0.10  # of a step


def first_size(simulate, stage_share):
    """The first of doubled sizes at which a stage takes more than WORTH_NAMING of a growing step, by model."""
    found = []
    for model in MODELS:
        sizes = [8 << i for i in range(10)]
        found.append(next((f"{g:,}" for g in sizes if stage_share(simulate(model, g)) > WORTH_NAMING), "beyond 4,096"))
    return found


def print_saturation(costs, a):
    print("\n### GPUs at which a part takes more than a tenth of a growing step\n")
    header("part", *[model.name for model in MODELS])

    def share(stage):
        return lambda step: step["stages"][stage] / step["seconds"]

    def with_ranks(model, gpus):
        return ranks_step(model, gpus, 2 * gpus, costs, a)

    def with_workers(model, gpus):
        return workers_step(model, gpus, 2 * gpus, costs, a)

    def with_trainers(model, gpus):
        return workers_step(model, gpus, 2 * gpus, costs, a, MANY_TRAINERS)

    for stage in STAGES[2:]:
        if stage != "update":
            row("ranks: " + stage, *first_size(with_ranks, share(stage)))
    row("workers: the trainer's own part", *first_size(with_workers, share("trainer")))
    row("workers of many trainers: weights from one server", *first_size(with_trainers, share("weights")))
    row("workers of many trainers: results", *first_size(with_trainers, lambda step: step["accepting"]))


# carnot/core/run/memory_budget.cpp: of a token of the step, kept; of one that travels between ranks, in three copies.
KEPT_BYTES, GATHERED_BYTES = 600, 3 * 52
# Of gradients on their way: four buckets of a million numbers, as they are sent and as they come.
TRAVELLING_BYTES = 2 * 4 * 4 * 2**20


def print_memory(a):
    print("\n### Memory of a rank\n")
    header("model", "weights and float32 gradients, GB of 141", "host: summed gradients of one machine's ranks, GB",
           "GPUs at which a growing step fills the host's half")
    for model in MODELS:
        lengths = [length_of(episode(random.Random(i), a), a) for i in range(2000)]
        of_gpu = 16 * sum(lengths) / len(lengths)  # tokens of a step
        ranks = 8 // model.devices  # of a host
        summed = 4 * model.parameters + ranks * TRAVELLING_BYTES  # the slices of all ranks are one row
        held = (a.host_memory / 2 - summed) / ranks / (KEPT_BYTES + GATHERED_BYTES)
        row(model.name, number(6 * model.parameters / 1e9) + (f" on {model.devices} GPUs" if model.devices > 1 else ""),
            number(summed / 1e9), f"{held / of_gpu:,.0f}")


def print_failures(costs, a):
    print("\n### A rank is lost\n")
    header("GPUs", "hours between two losses", *[f"{model.name}: lost" for model in MODELS])
    for gpus in SIZES:
        each = a.failures * gpus
        # A checkpoint every twenty steps: ten are computed again, and two minutes pass until the group has met.
        lost = [each * (10 * ranks_step(m, gpus, 512, costs, a)["seconds"] + 120) for m in MODELS]
        row(f"{gpus:,}", number(1 / each / 3600), *[f"{share / (1 + share):.1%}" for share in lost])


def print_store(costs):
    print("\n### The group's store, seconds\n")
    header("what", *[f"{size:,} ranks" for size in SIZES])
    rate = costs["store/requests"]
    together, alone = costs["store/4096_values_in_one_request"] / 4096, costs["store/4096_values_one_by_one"] / 4096
    row("all ranks get all names, twice, one request per name", *[number(2 * n * n * alone) for n in SIZES])
    row("the same, one request per rank", *[number(2 * n * (n * together + 3 / rate)) for n in SIZES])
    row("signs of life, in a second", *[number(10 * n / rate) for n in SIZES])
    row("a broken connection: each looks at all, once", *[number(n * n * (1 / rate + alone)) for n in SIZES])


RANK_CHANGES = [
    ("as it is", {}),
    ("a step's data stay with the rank that made them", {"data_stays": True}),
    ("every rank writes its own files", {"all_write": True}),
    ("groups are split among ranks", {"split_groups": True}),
    ("gradients are summed in a machine first", {"two_levels": True}),
    ("the update does not wait for the last episode", {"no_tail": True}),
]
WORKER_CHANGES = [
    ("as it is", {}),
    ("a quarter of the GPUs train, as ranks", {"many_trainers": True, "data_stays": True, "all_write": True}),
    ("each of them takes results", {"spread_results": True}),
    ("weights from worker to worker", {"tree": True}),
    ("the next task before the last episode ends", {"leases_ahead": True}),
    ("rollouts continue during the update", {"no_tail": True}),
]


def print_changes(title, simulate, changes_in_turn, costs, a, groups_of):
    print(f"\n### {title}\n")
    cases = [(model, gpus) for model in MODELS for gpus in (512, 4096)]
    header("change, and those above it", *[f"{m.name}, {g:,}" for m, g in cases])
    changes = Changes()
    for name, change in changes_in_turn:
        changes = replace(changes, **change)
        steps = [simulate(m, g, groups_of(g), costs, a, changes) for m, g in cases]
        row(name, *[f"{number(s['seconds'])} s, {s['computes']:.0%}" for s in steps])


def main():
    costs, a = Costs(), Assumed()
    if "--check" in sys.argv:
        print(f"\nworst error {check(costs):.0%}; {ALLOWED_ERROR:.0%} are allowed")
        return 0
    print_assumed()
    fixed, growing = (lambda gpus: 512), (lambda gpus: 2 * gpus)
    print_ranks(costs, a, "Ranks, 4,096 episodes per step", fixed)
    print_ranks(costs, a, "Ranks, 16 episodes per step and GPU", growing)
    print_workers(costs, a, "Workers and one trainer, 4,096 episodes per step", fixed)
    print_saturation(costs, a)
    print_memory(a)
    print_failures(costs, a)
    print_store(costs)
    print_changes("Ranks, 4,096 episodes per step, changed", ranks_step, RANK_CHANGES, costs, a, fixed)
    print_changes("Workers, 4,096 episodes per step, changed", workers_step, WORKER_CHANGES, costs, a, fixed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
