#!/usr/bin/env python3
"""Asynchronous mode against synchronous: one trainer and its workers, of one thread each, on one machine.

    bench/asynchronous.py uneven --carnot build/carnot --seeds 0 1 2 --runs runs/asynchronous
    bench/asynchronous.py success --carnot build/carnot --seeds 0 1 2 3 4 --runs runs/asynchronous

`uneven`: the throughput with bench/uneven.yaml, whose episodes differ in length and wait for a slow world.
`success`: what the quickstart's recipe learns from the same number of sampled tokens. Each seed's warm start is made
once, and all modes train from it, one after the other.

Writes a row of a table in Markdown per run as it ends, then the means with 95 % intervals. `success` adds the
difference to the synchronous run of the same seed. Needs the program, nats-server and Python's standard library.
Finished runs are kept: called again, it continues where it stopped.
"""
import argparse
import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

MODES = {
    "synchronous": [],
    "max_staleness 1": ["rollout.max_staleness=1"],
    "max_staleness 1, in flight": ["rollout.max_staleness=1", "rollout.in_flight_updates=true"],
    "max_staleness 4": ["rollout.max_staleness=4"],
    "max_staleness 4, in flight": ["rollout.max_staleness=4", "rollout.in_flight_updates=true"],
    "max_staleness 4, coupled": ["rollout.max_staleness=4", "rollout.old_log_probs=rollout"],
}
COMPARED = ["synchronous", "max_staleness 1", "max_staleness 4", "max_staleness 4, in flight"]

# From recipes/quickstart.yaml: fewer steps of SFT and training; old log-probabilities measured, since the
# decoupled objective needs them.
QUICKSTART = ["recipes/quickstart.yaml", "rollout.old_log_probs=recompute", "rollout.workers_task_groups=8"]
UNEVEN = ["bench/uneven.yaml", "rollout.workers_task_groups=2"]

# Two-sided 95 % points of Student's t, by degrees of freedom.
STUDENT = [math.nan, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def nats_server():
    debian = "/usr/sbin/nats-server"
    return debian if os.path.exists(debian) else shutil.which("nats-server") or sys.exit("nats-server: not found")


def warm_start(arguments, seed):
    folder = os.path.join(arguments.runs, f"warm_{seed}")
    checkpoint = os.path.join(folder, "checkpoints", f"global_step_{arguments.sft_steps}")
    if not os.path.exists(os.path.join(checkpoint, "MANIFEST.json")):
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([arguments.carnot, "sft", *QUICKSTART, f"seed={seed}", f"run_folder={folder}", "threads=2",
                        f"sft.steps={arguments.sft_steps}", "eval.tasks=20"],
                       check=True, stdout=subprocess.DEVNULL)
    return checkpoint


def recipe(arguments, seed):
    if arguments.what == "uneven":
        return [*UNEVEN, f"train.steps={arguments.steps or 14}"]
    return [*QUICKSTART, f"model.path={warm_start(arguments, seed)}", "sft.steps=0",
            f"train.steps={arguments.steps or 80}", f"train.max_sampled_tokens={arguments.tokens}",
            f"eval.tasks={arguments.eval_tasks}", "eval.before_training=false", "train.keep_rollouts=false"]


def train(arguments, folder, seed, overrides):
    """One run: a broker, workers, the trainer."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder + ".nats", exist_ok=True)
    port = free_port()
    address = f"nats://127.0.0.1:{port}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    words = [arguments.carnot, "train", *recipe(arguments, seed), "threads=1", f"seed={seed}", f"run_folder={folder}",
             f"rollout.workers={address}", *overrides, *arguments.overrides]
    server = [nats_server(), "-js", "-a", "127.0.0.1", "-p", str(port), "-sd", folder + ".nats"]
    background = [subprocess.Popen(server, **quiet)]
    for _ in range(arguments.workers):
        background.append(subprocess.Popen([arguments.carnot, "worker", address, "--one-run", "--threads", "1"],
                                           **quiet))
    try:
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    finally:
        for process in reversed(background):
            process.terminate()
            process.wait()
        shutil.rmtree(folder + ".nats", ignore_errors=True)


def figures(folder):
    with open(os.path.join(folder, "metrics.jsonl")) as lines:
        steps = [json.loads(line) for line in lines]
    with open(os.path.join(folder, "summary.json")) as summary:
        success = json.load(summary)["after"]["success"]
    timed = steps[2:]  # the first ones wait for workers to start

    def total(name):
        return sum(step.get(name) or 0 for step in timed)

    seconds = total("timing_s/step")
    return {"tokens a second": total("perf/total_num_tokens") / seconds,
            "seconds a step": seconds / len(timed),
            "trainer idle": total("timing_s/trainer_idle") / seconds,
            "worker idle": total("timing_s/worker_idle") / seconds,
            "staleness": total("async/staleness/mean") / len(timed),
            "largest": max(step.get("async/staleness/max", 0) for step in steps),
            "swaps": total("async/weight_swaps") / len(timed),
            "kl": total("rollout_corr/k3_kl") / len(timed),
            "success": 100 * success,
            "steps": len(steps),
            "tokens": sum(step["rollout/sampled_tokens"] for step in steps)}


def mean(values):
    return sum(values) / len(values)


def interval(values, digits):
    """The mean and its 95 % interval by Student's t."""
    middle = f"{mean(values):,.{digits}f}"
    if not 1 < len(values) <= len(STUDENT):
        return middle
    deviation = math.sqrt(sum((value - mean(values)) ** 2 for value in values) / (len(values) - 1))
    half = STUDENT[len(values) - 1] * deviation / math.sqrt(len(values))
    return f"{middle} [{mean(values) - half:,.{digits}f}, {mean(values) + half:,.{digits}f}]"


def table_head(arguments):
    columns = ["mode, seed", "tokens a second", "seconds a step", "trainer idle", "workers idle",
               "staleness, mean / largest", "swaps a step"]
    if arguments.what == "success":
        columns += ["K3 of behaviour and old policy", "success after, per cent", "difference to synchronous",
                    "steps", "sampled tokens, thousands"]
    return "| " + " | ".join(columns) + " |\n|---" + "|---:" * (len(columns) - 1) + "|"


def row(arguments, name, runs, synchronous):
    """Of one run, or of several that are averaged."""
    middle = {key: mean([run[key] for run in runs]) for key in runs[0]}
    cells = [name, interval([run["tokens a second"] for run in runs], 0),
             interval([run["seconds a step"] for run in runs], 2), f"{100 * middle['trainer idle']:.0f} %",
             f"{100 * middle['worker idle'] / arguments.workers:.0f} %",
             f"{middle['staleness']:.2f} / {max(run['largest'] for run in runs):.0f}", f"{middle['swaps']:.1f}"]
    if arguments.what == "success":
        differences = [run["success"] - other["success"] for run, other in zip(runs, synchronous)]
        cells += [f"{middle['kl']:.1e}", interval([run["success"] for run in runs], 1),
                  interval(differences, 1) if differences and runs != synchronous else "",
                  f"{middle['steps']:.1f}", f"{middle['tokens'] / 1000:.0f}"]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["uneven", "success"])
    parser.add_argument("--carnot", default="build/carnot")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--modes", nargs="+", default=COMPARED, choices=list(MODES), metavar="MODE")
    parser.add_argument("--runs", default="runs/asynchronous")
    parser.add_argument("--workers", type=int, default=0, help="0: six where episodes wait, one otherwise")
    parser.add_argument("--steps", type=int, default=0, help="at most; 0: 14 of uneven episodes, 80 of the other")
    parser.add_argument("--tokens", type=int, default=170_000, help="that `success` samples")
    parser.add_argument("--sft-steps", type=int, default=800)
    parser.add_argument("--eval-tasks", type=int, default=400)
    parser.add_argument("overrides", nargs="*", help="key=value")
    arguments = parser.parse_intermixed_args()
    arguments.workers = arguments.workers or (6 if arguments.what == "uneven" else 1)
    os.makedirs(arguments.runs, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # background processes are ended, too
    found = {mode: [] for mode in arguments.modes}
    begin = time.time()
    print(table_head(arguments), flush=True)
    for seed in arguments.seeds:
        for mode in arguments.modes:
            folder = os.path.join(arguments.runs, f"{arguments.what}_{mode.replace(' ', '_').replace(',', '')}_{seed}")
            if not os.path.exists(os.path.join(folder, "summary.json")):
                since = time.time()
                train(arguments, folder, seed, MODES[mode])
                print(f"{folder}: {time.time() - since:.0f} s, {time.time() - begin:.0f} s in all", file=sys.stderr)
            found[mode].append(figures(folder))
            print(row(arguments, f"{mode}, {seed}", found[mode][-1:], found.get("synchronous", [])[-1:]), flush=True)
    print("\nMeans over seeds [95 % interval]:\n\n" + table_head(arguments).replace("mode, seed", "mode"))
    for mode, runs in found.items():
        print(row(arguments, f"`{mode}`", runs, found.get("synchronous", [])), flush=True)


if __name__ == "__main__":
    main()
