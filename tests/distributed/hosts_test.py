"""Ranks and workers on two hosts: network namespaces joined by a virtual cable, which the test cuts and slows down.

hosts_test.py CARNOT FOLDER. Exits with 77 if this machine cannot make namespaces (that takes root, or its capabilities in a container). CARNOT_FAULT_CASES=N|all is how often the cable between two ranks is cut: twice by default, 20 times for `all`.
"""
import hashlib
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

RECIPE = """
threads: 1
resume: auto
env: {name: search_qa, train_worlds: 1, held_out_worlds: 1}
model: {hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}
rollout: {group_size: 2, max_context_tokens: 256, max_response_tokens: 16, workers_lease_seconds: 2}
train: {steps: 8, groups_per_step: 4, save_every: 1, micro_batch_tokens: 256, learning_rate: 1e-3, virtual_shards: 2}
eval: {tasks: 2, before_training: false}
distributed: {join_seconds: 60, lost_after_seconds: 4}
"""
STEPS = 8
CASES = os.environ.get("CARNOT_FAULT_CASES", "2")
ADDRESSES = ["10.213.77.1", "10.213.77.2"]


class Skipped(Exception):
    pass


class Hosts:
    """Two hosts with different names, joined by a cable."""

    def __init__(self):
        self.spaces = [f"carnot{os.getpid()}{letter}" for letter in "ab"]
        self.names = ["host-a", "host-b"]

    def __enter__(self):
        try:
            for space in self.spaces:
                self.ip("netns", "add", space)
            self.ip("link", "add", "cable", "netns", self.spaces[0], "type", "veth", "peer", "name", "cable", "netns",
                    self.spaces[1])
            for space, address in zip(self.spaces, ADDRESSES):
                self.ip("-n", space, "address", "add", address + "/30", "dev", "cable")
                self.ip("-n", space, "link", "set", "cable", "up")
                self.ip("-n", space, "link", "set", "lo", "up")
            self.run(0, ["true"])
        except (OSError, subprocess.CalledProcessError) as error:
            self.__exit__()
            why = getattr(error, "stderr", None) or error
            raise Skipped(f"this machine cannot make network namespaces: {why}".strip()) from error
        return self

    def __exit__(self, *_):
        for space in self.spaces:
            subprocess.run(["ip", "netns", "delete", space], capture_output=True)

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True, capture_output=True, text=True)

    def words(self, host, words):
        rename = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.names[host]]
        return ["ip", "netns", "exec", self.spaces[host], *rename, *map(str, words)]

    def run(self, host, words):
        subprocess.run(self.words(host, words), check=True, capture_output=True, text=True)

    def start(self, host, words, log, environment=None):
        return subprocess.Popen(self.words(host, words), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=open(log, "w"), env={**os.environ, **(environment or {})})

    def cut(self):
        self.ip("-n", self.spaces[0], "link", "set", "cable", "down")

    def mend(self):
        self.ip("-n", self.spaces[0], "link", "set", "cable", "up")

    def slow_down(self, rate):
        """False if the kernel has no such queue."""
        queue = ["tc", "qdisc", "add", "dev", "cable", "root", "tbf", "rate", rate, "burst", "16kbit", "latency", "2s"]
        return all(subprocess.run(["ip", "netns", "exec", space, *queue], capture_output=True).returncode == 0
                   for space in self.spaces)

    def speed_up(self):
        for space in self.spaces:
            subprocess.run(["ip", "netns", "exec", space, "tc", "qdisc", "delete", "dev", "cable", "root"], check=True)


class Test:
    def __init__(self, hosts, carnot, folder):
        self.hosts, self.carnot, self.folder = hosts, carnot, folder
        self.recipe = folder / "recipe.yaml"
        self.recipe.write_text(RECIPE)
        self.started = []
        subprocess.run([carnot, "train", self.recipe, f"run_folder={folder / 'alone'}"], check=True,
                       stdout=subprocess.DEVNULL)
        self.expected = self.weights("alone")

    def weights(self, run):
        file = self.folder / run / f"checkpoints/global_step_{STEPS}/model.safetensors"
        return hashlib.sha256(file.read_bytes()).hexdigest()

    def expect(self, good, what):
        if not good:
            sys.exit(f"FAILED: {what}")

    def log(self, name):
        return self.folder / f"{name}.log"

    def start(self, host, words, name, environment=None):
        process = self.hosts.start(host, [self.carnot, *words], self.log(name), environment)
        self.started.append(process)
        return process

    def end(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()

    def ranks(self, run, port):
        return [self.start(rank, ["train", self.recipe, f"run_folder={self.folder / run}"], f"{run}.{rank}",
                           {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": ADDRESSES[0],
                            "MASTER_PORT": str(port)}) for rank in (0, 1)]

    def wait_for(self, ready, processes, seconds=120):
        deadline = time.monotonic() + seconds
        while not ready() and time.monotonic() < deadline and all(p.poll() is None for p in processes):
            time.sleep(0.01)

    def wait(self, processes, what):
        for process in processes:
            try:
                process.wait(timeout=240)
            except subprocess.TimeoutExpired:
                sys.exit(f"FAILED: {what}: a process is still running after four minutes")
        return [process.returncode for process in processes]

    def said(self, name):
        return self.log(name).read_text()

    def two_hosts_equal_one(self, run="joined", port=29501):
        exits = self.wait(self.ranks(run, port), run)
        self.expect(exits == [0, 0], f"{run}: {exits}: {self.said(run + '.0')} {self.said(run + '.1')}")
        self.expect(self.weights(run) == self.expected, f"{run}: other weights than those of one process")

    def slow_cable(self):
        if not self.hosts.slow_down("4mbit"):
            return print("the slow cable is skipped: this kernel has no token bucket filter (tbf)")
        begin = time.monotonic()
        self.two_hosts_equal_one("slow", 29502)
        self.hosts.speed_up()
        print(f"a cable of 4 Mbit/s: {time.monotonic() - begin:.0f} s for the run, with the same weights")

    def cut_cable(self, times):
        """A run whose cable is cut at random moments and reconnected, until the run ends."""
        draw = random.Random(11)
        cuts, seconds, number = 0, [], 0
        while cuts < times:
            run, number = f"cut_{number}", number + 1
            shutil.rmtree(self.folder / run, ignore_errors=True)
            done = lambda: len(list((self.folder / run / "checkpoints").glob("global_step_*")))
            at_end = False
            for start in range(6):
                before = done()
                ranks = self.ranks(run, 29510 + start % 2)
                self.wait_for(lambda: done() > before or (before > 0 and self.locked(run, ranks[0])), ranks)
                if cuts >= times or start == 5:
                    at_end = True
                    break
                time.sleep(draw.random() * 0.4)
                if any(p.poll() is not None for p in ranks):
                    at_end = True
                    break
                self.hosts.cut()
                begin = time.monotonic()
                exits = self.wait(ranks, run)
                taken = time.monotonic() - begin
                self.hosts.mend()
                texts = [self.said(f"{run}.{rank}") for rank in (0, 1)]
                if exits == [0, 0]:  # it had just ended
                    at_end = True
                    break
                cuts += 1
                seconds.append(taken)
                shown = f"{exits}: {texts}"
                # The rank that is cut off may just have been leaving; then the other one has ended well.
                for rank in (0, 1):
                    self.expect(exits[rank] in (0, 75), shown)
                    if exits[rank] == 75:
                        self.expect(f"rank {1 - rank} on host {self.hosts.names[1 - rank]} " in texts[rank], shown)
                        self.expect(texts[rank].count("carnot: ") == 1, shown)
            self.expect(at_end, run)
            exits = self.wait(ranks, run)
            self.expect(exits == [0, 0], f"{run}: {exits}: {self.said(run + '.0')} {self.said(run + '.1')}")
            self.expect(self.weights(run) == self.expected, f"{run}: other weights than those of one process")
        print(f"{cuts} cuts of the cable between two ranks: both ended after {min(seconds):.1f} to {max(seconds):.1f} "
              f"s, and {number} runs with the weights of one process")

    def locked(self, run, process):
        lock = self.folder / run / ".carnot-lock"
        return lock.exists() and str(process.pid) in lock.read_text()

    def workers_behind_a_cut_cable(self):
        """The broker and the trainer are on one host, the only worker on the other."""
        key = {"TRAINERS_KEY": "of these hosts"}
        store = self.folder / "nats"
        server = shutil.which("nats-server") or "/usr/sbin/nats-server"
        broker = self.hosts.start(0, [server, "-js", "-a", ADDRESSES[0], "-p", "4222", "-sd", store], self.log("nats"))
        self.started.append(broker)
        place = f"nats://{ADDRESSES[0]}:4222"
        trainer = self.start(0, ["train", self.recipe, f"run_folder={self.folder / 'planes'}", f"rollout.workers={place}",
                                 f"rollout.workers_listen={ADDRESSES[0]}", "rollout.workers_port=8400",
                                 "rollout.workers_key_env=TRAINERS_KEY"], "trainer", key)
        worker = self.start(1, ["worker", place, "--key-env", "TRAINERS_KEY"], "worker", key)
        cuts = 0
        for step in (2, 5):
            checkpoint = self.folder / f"planes/checkpoints/global_step_{step}"
            self.wait_for(checkpoint.exists, [trainer, worker])
            if trainer.poll() is not None:
                break
            self.hosts.cut()
            time.sleep(5)  # more than a lease
            self.hosts.mend()
            cuts += 1
        exits = self.wait([trainer], "the trainer")
        self.expect(exits == [0], f"the trainer: {exits}: {self.said('trainer')} {self.said('worker')}")
        self.expect(worker.poll() is None, f"the worker has ended: {self.said('worker')}")
        self.expect(self.weights("planes") == self.expected, "with a worker: other weights than those of one process")
        print(f"{cuts} cuts of 5 s between trainer and worker: both waited and continued")


def main(carnot, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        with Hosts() as hosts:
            test = Test(hosts, carnot, folder)
            try:
                test.two_hosts_equal_one()
                test.slow_cable()
                test.cut_cable(20 if CASES == "all" else int(CASES))
                test.workers_behind_a_cut_cable()
            finally:
                test.end()
    except Skipped as why:
        print(f"skipped: missing namespaces: {why}")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2])))
