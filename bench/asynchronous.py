#!/usr/bin/env python3
"""Asynchronous mode against synchronous: one trainer and one worker, of one thread each, on one machine.

    bench/asynchronous.py --carnot build/carnot --seeds 0 1 2 3 4 --runs runs/asynchronous

Each seed's warm start is made once. All modes then train from it, one after the other, on equally many trajectories. A
row of a table per run, and one of the means. Needs the program, nats-server and Python's standard library. Finished runs
are kept: called again, it goes on where it was.
"""
import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time

# From recipes/quickstart.yaml: fewer steps of SFT, training and evaluation; old log-probabilities measured, since the
# decoupled objective needs them.
RECIPE = ["recipes/quickstart.yaml", "rollout.old_log_probs=recompute", "rollout.plane_task_groups=8"]
MODES = {
    "synchronous": [],
    "max_staleness 1": ["rollout.max_staleness=1"],
    "max_staleness 1, in flight": ["rollout.max_staleness=1", "rollout.in_flight_updates=true"],
    "max_staleness 4": ["rollout.max_staleness=4"],
    "max_staleness 4, coupled": ["rollout.max_staleness=4", "rollout.old_log_probs=rollout"],
}


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
        subprocess.run([arguments.carnot, "sft", *RECIPE, f"seed={seed}", f"run_folder={folder}", "threads=2",
                        f"sft.steps={arguments.sft_steps}", "eval.tasks=20"],
                       check=True, stdout=subprocess.DEVNULL)
    return checkpoint


def train(arguments, folder, seed, overrides):
    """One run: a broker, a worker, the trainer."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder + ".nats", exist_ok=True)
    port = free_port()
    address = f"nats://127.0.0.1:{port}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    broker = subprocess.Popen([nats_server(), "-js", "-a", "127.0.0.1", "-p", str(port), "-sd", folder + ".nats"], **quiet)
    worker = subprocess.Popen([arguments.carnot, "worker", address, "--one-run", "--threads", "1"], **quiet)
    try:
        subprocess.run([arguments.carnot, "train", *RECIPE, "threads=1", f"seed={seed}", f"run_folder={folder}",
                        f"model.path={warm_start(arguments, seed)}", "sft.steps=0", f"rollout.plane={address}",
                        f"train.steps={arguments.steps}", f"eval.tasks={arguments.eval_tasks}",
                        "eval.before_training=false", "train.keep_rollouts=false", *overrides, *arguments.overrides],
                       check=True, stdout=subprocess.DEVNULL)
    finally:
        for process in (worker, broker):
            process.terminate()
            process.wait()
        shutil.rmtree(folder + ".nats", ignore_errors=True)


def figures(folder):
    with open(os.path.join(folder, "metrics.jsonl")) as lines:
        steps = [json.loads(line) for line in lines]
    with open(os.path.join(folder, "summary.json")) as summary:
        success = json.load(summary)["after"]["success"]

    def total(name):
        return sum(step.get(name) or 0 for step in steps[1:])  # the first one waits for the worker to start

    seconds = total("timing_s/step")
    count = len(steps) - 1
    return {"tokens a second": total("perf/total_num_tokens") / seconds,
            "seconds a step": seconds / count,
            "trainer idle": total("timing_s/trainer_idle") / seconds,
            "worker idle": total("timing_s/worker_idle") / seconds,
            "staleness": total("async/staleness/mean") / count,
            "largest": max(step.get("async/staleness/max", 0) for step in steps),
            "kl": total("rollout_corr/k3_kl") / count,
            "success": success,
            "tokens": sum(step["rollout/sampled_tokens"] for step in steps)}


def row(name, f):
    return (f"| {name} | {f['tokens a second']:.0f} | {f['seconds a step']:.2f} | {100 * f['trainer idle']:.0f} % |"
            f" {100 * f['worker idle']:.0f} % | {f['staleness']:.2f} / {f['largest']:.0f} | {f['kl']:.1e} |"
            f" {100 * f['success']:.1f} | {f['tokens'] / 1000:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--carnot", default="build/carnot")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--modes", nargs="+", default=list(MODES), choices=list(MODES), metavar="MODE")
    parser.add_argument("--runs", default="runs/asynchronous")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--sft-steps", type=int, default=400)
    parser.add_argument("--eval-tasks", type=int, default=400)
    parser.add_argument("overrides", nargs="*", help="key=value")
    arguments = parser.parse_intermixed_args()
    os.makedirs(arguments.runs, exist_ok=True)
    found = {mode: [] for mode in arguments.modes}
    print("| mode, seed | tokens a second | seconds a step | trainer idle | worker idle | staleness, mean / max |"
          " K3 of behaviour and old policy | success after, per cent | sampled tokens, thousands |")
    print("|---|---|---|---|---|---|---|---|---|")
    for seed in arguments.seeds:
        for mode in arguments.modes:
            folder = os.path.join(arguments.runs, f"{mode.replace(' ', '_').replace(',', '')}_{seed}")
            if not os.path.exists(os.path.join(folder, "summary.json")):
                begin = time.time()
                train(arguments, folder, seed, MODES[mode])
                print(f"{folder}: {time.time() - begin:.0f} s", file=sys.stderr)
            found[mode].append(figures(folder))
            print(row(f"{mode}, {seed}", found[mode][-1]), flush=True)
    for mode, runs in found.items():
        mean = {name: sum(run[name] for run in runs) / len(runs) for name in runs[0]}
        print(row(f"**{mode}**, mean", mean), flush=True)


if __name__ == "__main__":
    main()
