"""One training step on many GPUs, simulated: what bench/scaling.py prints.

GPUs and their networks were not measured: ASSUMED holds public figures, each with its source, and guesses.
"""

import functools
import heapq
import json
import math
import random
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"

# name: (value, unit, where it comes from)
ASSUMED = {
    "arithmetic": (989e12, "FLOP/s", "H200 SXM, bfloat16 without sparsity (NVIDIA's H200 data sheet)"),
    "memory_rate": (4.8e12, "byte/s", "H200 SXM (same)"),
    "memory": (141e9, "bytes", "H200 SXM (same)"),
    "nvlink": (450e9, "byte/s", "each way, of 900 GB/s for both (same)"),
    "infiniband": (50e9, "byte/s", "400 Gb/s for each GPU of a DGX H200 (NVIDIA's DGX H200 data sheet)"),
    "ethernet": (12.5e9, "byte/s", "the DGX H200's 100 Gb/s port (NVIDIA's DGX BasePOD reference architecture)"),
    "host_memory": (2e12, "bytes", "of a DGX H200 with eight GPUs (same)"),
    "training_share": (0.40, "", "of the arithmetic; Megatron-LM's README has 0.41 to 0.48 on H100"),
    "prefill_share": (0.40, "", "of the arithmetic; as training"),
    "decode_share": (0.60, "", "of the memory rate; no source"),
    "launch": (1e-3, "s", "of a decode step besides the model's reads; no source"),
    "hop": (20e-6, "s", "of a small message between two ranks; no source"),
    "disk": (2e9, "byte/s", "of one process to a shared file system; no source"),
    "failures": (419 / (54 * 86400 * 16384), "a second and GPU",
                 "419 in 54 days on 16,384 GPUs (The Llama 3 Herd of Models, 2024)"),
    "sampled": (6000, "tokens", "median of an episode, log-normal with sigma 0.8, 32,000 at most; no source"),
    "tool_every": (500, "tokens", "sampled between two tool calls; no source"),
    "tool_tokens": (125, "tokens", "of a tool's answer; no source"),
    "tool_wait": (1.0, "s", "median of a tool call, log-normal with sigma 1; no source"),
}


class Assumed:
    """ASSUMED's values as members."""

    def __init__(self, **changed):
        for name, (value, _, _) in ASSUMED.items():
            setattr(self, name, changed.get(name, value))


@dataclass(frozen=True)
class Model:
    name: str
    parameters: float
    layers: int
    queries: int  # width of a layer's queries
    keys: int  # width of a layer's keys
    devices: int = 1  # GPUs that form one rank; Carnot supports only one

    @property
    def cache_bytes(self):
        """Of a token, in bfloat16."""
        return 2 * self.layers * self.keys * 2

    def forward(self, length):
        """FLOP of a forward pass over a sequence."""
        return 2 * self.parameters * length + 2 * self.layers * self.queries * length * length


# Qwen2.5's shapes. 32 B do not fit one GPU next to float32 gradients: a rank is a machine of eight.
MODELS = [
    Model("0.5B", 0.494e9, 24, 896, 128),
    Model("7B", 7.62e9, 28, 3584, 512),
    Model("32B", 32.8e9, 64, 5120, 1024, devices=8),
]
SEVERAL_AS_ONE = 0.75  # of the eight's sum; no source


class Device:
    """What one rank computes with."""

    def __init__(self, model, assumed):
        several = model.devices * (SEVERAL_AS_ONE if model.devices > 1 else 1)
        self.model, self.assumed = model, assumed
        self.arithmetic = several * assumed.arithmetic
        self.memory_rate = several * assumed.memory_rate
        self.memory = model.devices * assumed.memory

    def decode_step(self, batch, context):
        """Seconds in which each of `batch` sequences gets a token; `context` tokens are read of the cache."""
        model, a = self.model, self.assumed
        reads = (2 * model.parameters + model.cache_bytes * context) / (self.memory_rate * a.decode_share)
        computes = 2 * model.parameters * batch / (self.arithmetic * a.prefill_share)
        answers = a.tool_tokens / a.tool_every * 2 * model.parameters * batch / (self.arithmetic * a.prefill_share)
        return max(reads, computes) + answers + a.launch

    def room(self, length):
        """Sequences of that length that the cache holds next to weights and gradients."""
        free = 0.9 * self.memory - 6 * self.model.parameters
        return max(1, int(free / (self.model.cache_bytes * length)))


def episode(draw, assumed):
    """Pieces of one episode: tokens sampled, then seconds that a tool takes."""
    left = min(32000, max(100, int(assumed.sampled * math.exp(0.8 * draw.gauss(0, 1)))))
    pieces = []
    while left > 0:
        tokens = min(left, assumed.tool_every)
        left -= tokens
        pieces.append((tokens, assumed.tool_wait * math.exp(draw.gauss(0, 1)) if left > 0 else 0.0))
    return pieces


def sampled_in(pieces):
    return sum(tokens for tokens, _ in pieces)


def length_of(pieces, assumed):
    return int(sampled_in(pieces) * (1 + assumed.tool_tokens / assumed.tool_every))


def roll_out(device, episodes):
    """Rolls out episodes in one batch, from event to event. Returns the seconds, and those in which the device
    computed."""
    a = device.assumed
    grows = 1 + a.tool_tokens / a.tool_every
    room = device.room(a.sampled * 1.4)
    sampling, waiting = [], []  # (tokens at which the piece is sampled, episode, piece); (time, episode, piece)
    clock = made = computed = context = 0.0
    held = [0.0] * len(episodes)  # an episode's tokens in the cache
    queue = list(range(len(episodes)))[::-1]

    def start(which, piece):
        heapq.heappush(sampling, (made + episodes[which][piece][0], which, piece))

    active = 0
    while queue and active < room:
        start(queue.pop(), 0)
        active += 1
    while sampling or waiting:
        step = device.decode_step(len(sampling), context) if sampling else 0.0
        sampled_at = clock + (sampling[0][0] - made) * step if sampling else math.inf
        if waiting and waiting[0][0] <= sampled_at:
            now, which, piece = heapq.heappop(waiting)
            if sampling:
                tokens = (now - clock) / step
                made, computed = made + tokens, computed + now - clock
                context += tokens * len(sampling) * grows
            clock = now
            context += held[which]
            start(which, piece)
            continue
        end, which, piece = heapq.heappop(sampling)
        context += (end - made) * (len(sampling) + 1) * grows
        computed += sampled_at - clock
        clock, made = sampled_at, end
        held[which] += episodes[which][piece][0] * grows
        context = max(0.0, context - held[which])
        if piece + 1 < len(episodes[which]):
            heapq.heappush(waiting, (clock + episodes[which][piece][1], which, piece + 1))
        elif queue:
            start(queue.pop(), 0)
    return clock, computed


def even_share(count, part, parts):
    return range(count * part // parts, count * (part + 1) // parts)


def largest_share(sizes, parts):
    """The largest share of things shared out as in rank/shares.h."""
    loads = [0.0] * parts
    for size in sorted(sizes, reverse=True):
        heapq.heapreplace(loads, loads[0] + size)
    return max(loads)


@dataclass(frozen=True)
class Changes:
    """Possible changes, none of which is in Carnot."""

    data_stays: bool = False  # a rank computes credit and packs what it rolled out; only sums travel
    all_write: bool = False  # every rank writes its own rows and its part of a checkpoint
    two_levels: bool = False  # gradients are summed in a machine first, then across machines
    split_groups: bool = False  # a group's episodes may go to several ranks
    no_tail: bool = False  # the update does not wait for the last episode (bounded staleness)
    many_trainers: bool = False  # a quarter of the GPUs are ranks of the trainer
    spread_results: bool = False  # each of the trainers takes results
    tree: bool = False  # workers fetch weights from workers
    leases_ahead: bool = False  # a worker takes its next task before the last episode has ended


class Costs:
    """Measured costs, in seconds and bytes."""

    def __init__(self):
        self.all = json.loads((RESULTS / "scale_costs.json").read_text())

    def token(self, name):
        return self.all["token/" + name] * 1e-9

    def __getitem__(self, name):
        return self.all[name]


def exchange_seconds(model, ranks, a, two_levels=False):
    """Gradients in float32 from all to all, weights in bfloat16 to all."""
    gpus = ranks * model.devices
    if ranks == 1:
        return 0.0
    machines = max(1, gpus // 8)
    sent = 4 * model.parameters * (ranks - 1) / ranks / model.devices  # by a GPU
    weights = 2 * model.parameters / 8  # that arrive at a GPU's port; its machine passes them on
    if machines == 1:
        return sent / a.nvlink + 8 * weights / a.nvlink
    across = sent * (machines - 1) / machines
    if two_levels and model.devices == 1:
        across = across / 8
    within = sent / a.nvlink
    return across / a.infiniband + within + weights / a.infiniband + 8 * weights / a.nvlink


def small_collectives(ranks, a):
    """Eight gathers of a step, each a ring for the sizes and one for the bytes."""
    return 16 * (ranks - 1) * a.hop


def update_seconds(model, device, lengths, ranks):
    """For the rank with most tokens, with activation checkpointing: four forward passes' arithmetic."""
    rate = device.arithmetic * device.assumed.training_share
    work = [4 * model.forward(length) / rate for length in lengths]
    return largest_share(work, ranks), sum(work) / ranks


def learner_stages(model, ranks, lengths, sampled, costs, a, changes, machine_share=1.0):
    """Seconds of a step's stages on the trainer's ranks, rollouts apart, and the mean rank's compute."""
    device = Device(model, a)
    tokens = sum(lengths)
    own = tokens / ranks
    seen = own if changes.data_stays else tokens  # by each rank
    rate = device.arithmetic * a.prefill_share
    measure = [model.forward(length) / rate for length in lengths]
    update, mean_update = update_seconds(model, device, lengths, ranks)
    stages = {"log-probs": largest_share(measure, ranks), "update": update}
    bytes_of_token = costs["token/bytes"]
    if changes.data_stays or ranks == 1:
        stages["gather"] = 0.0
    else:
        # Rollouts, then signals: padded to the rank that has most. Reports: eight bytes a sampled token.
        moved = (2 * bytes_of_token - 16) * tokens * 1.3 + 8 * sampled
        stages["gather"] = (moved / (a.infiniband * model.devices) + 2 * own * costs.token("write_bytes")
                            + 2 * tokens * costs.token("read_bytes"))
    stages["credit, packing"] = seen * (costs.token("credit") + costs.token("metrics") + costs.token("pack"))
    stages["exchange"] = exchange_seconds(model, ranks, a, changes.two_levels) + small_collectives(ranks, a)
    written = own if changes.all_write else tokens
    checkpoint = 10 * model.parameters / (ranks if changes.all_write else 1) / 20  # one in twenty steps
    stages["writing"] = (written * (costs.token("rows") + costs["token/row_bytes"] / a.disk) + checkpoint / a.disk)
    return stages, sum(measure) / ranks + mean_update


@functools.cache
def ranks_step(model, gpus, groups, costs, a, changes=Changes(), seed=1):
    """A step of ranks that alternate between rollouts and training, as in docs/distributed.md."""
    draw = random.Random(seed)
    ranks = gpus // model.devices
    episodes = [episode(draw, a) for _ in range(8 * groups)]
    lengths = [length_of(one, a) for one in episodes]
    device = Device(model, a)
    slowest = computed = 0.0
    for rank in range(ranks):
        if changes.split_groups:
            share = episodes[rank::ranks]
        else:
            share = [episodes[8 * g + i] for g in even_share(groups, rank, ranks) for i in range(8)]
        seconds, busy = roll_out(device, share) if share else (0.0, 0.0)
        slowest, computed = max(slowest, seconds), computed + busy / ranks
    stages = {"rollout": computed if changes.no_tail else slowest}
    learner, compute = learner_stages(model, ranks, lengths, sum(map(sampled_in, episodes)), costs, a, changes)
    stages.update(learner)
    seconds = sum(stages.values())
    return {"seconds": seconds, "stages": stages, "tokens": sum(lengths), "computes": (computed + compute) / seconds,
            "rate": sum(lengths) / seconds / gpus}


@functools.cache
def workers_step(model, gpus, groups, costs, a, changes=Changes(), task_groups=1, seed=1):
    """A step whose rollouts are made by workers, one for each rank's worth of GPUs, and trained by the trainer."""
    draw = random.Random(seed)
    ranks = gpus // model.devices
    trainers = max(1, ranks // 4) if changes.many_trainers else 1
    workers = max(1, ranks - trainers)
    episodes = [episode(draw, a) for _ in range(8 * groups)]
    lengths = [length_of(one, a) for one in episodes]
    device = Device(model, a)
    size = 2 * model.parameters
    one_fetch = size / (costs["http/fetch_and_hash"] * 1e9)
    publish = 2 * size / (costs["sha256"] * 1e9)  # written and hashed, by one thread
    if changes.tree:
        fetched = publish + one_fetch + math.ceil(math.log2(workers + 1)) * 0.1
    else:
        fetched = publish + max(one_fetch, workers * size / a.ethernet)
    tasks = [list(range(8 * g, min(8 * (g + task_groups), len(episodes)))) for g in range(0, groups, task_groups)]
    free = [(fetched, w) for w in range(workers)]
    heapq.heapify(free)
    received = accepted = busy = wire_busy = accept_busy = 0.0
    if changes.leases_ahead:  # a worker's batch is as full as its cache: what it gets in turn is one long batch
        shares = [[e for task in tasks[w::workers] for e in task] for w in range(workers)]
        runs = []
        for share in shares:
            if share:
                seconds, computed = roll_out(device, [episodes[e] for e in share])
                runs.append((fetched + seconds, share))
                busy += computed
    else:
        runs = []
        for task in tasks:
            at, worker = heapq.heappop(free)
            seconds, computed = roll_out(device, [episodes[e] for e in task])
            end = at + seconds
            busy += computed
            runs.append((end, task))
            heapq.heappush(free, (end, worker))
    for end, task in sorted(runs):
        tokens = sum(lengths[e] for e in task)
        wire, accept = tokens * costs["token/bytes"] / a.ethernet, tokens * costs.token("accept_result")
        if changes.spread_results:
            wire, accept = wire / trainers, accept / trainers
        received = max(end, received) + wire
        accepted = max(received, accepted) + accept
        wire_busy, accept_busy = wire_busy + wire, accept_busy + accept
    learner, compute = learner_stages(model, trainers, lengths, sum(map(sampled_in, episodes)), costs, a, changes)
    last = max(end for end, _ in runs)
    stages = {"weights": fetched, "rollout": last - fetched, "results": accepted - last}
    trained = sum(learner.values())
    seconds = accepted + trained
    if changes.no_tail:  # both sides at once; workers fetch once for each step
        made = fetched + busy / workers
        seconds = max(made, accept_busy, trained)
        stages = {"weights": fetched, "rollout": busy / workers, "results": 0.0}
    stages["trainer"] = trained
    return {"seconds": seconds, "stages": stages, "tokens": sum(lengths), "workers": workers, "trainers": trainers,
            "computes": (busy + compute * trainers) / (seconds * ranks), "accepting": accept_busy / seconds,
            "rate": sum(lengths) / seconds / gpus}
