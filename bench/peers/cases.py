"""The work that bench/peers/models.py measures, and its targets."""
import dataclasses
import math
import random
from typing import Callable, Optional

BIG, MIDDLE, TINY, SMALLEST = "qwen2.5-0.5b", "smollm2-135m", "qwen2-43m", "qwen2-smallest"
# One of each kind of layer, 40 M parameters beside experts that are not chosen; the first is what others differ from.
MIXERS = {"qwen3-dense": "dense", "gemma3-window": "windows of 128", "lfm2-convolution": "short convolutions",
          "qwen3.5-delta": "delta rule", "qwen3-experts": "2 of 16 experts"}
NAMES = {BIG: "0.5 B", MIDDLE: "135 M", TINY: "43 M", SMALLEST: "smallest"} | MIXERS


@dataclasses.dataclass
class Figure:
    """`amount` over the seconds of an answer's `key`, in `unit`; if `amount` is 0, the value of `key` itself."""

    name: str
    key: str
    amount: float
    unit: str = "tokens/s"
    limit: Optional[Callable] = None  # of Work and Machine: the seconds at best
    ratios: dict = dataclasses.field(default_factory=dict)  # targets, by peer
    fraction: Optional[float] = None  # target for the share of the limit
    most: Optional[float] = None  # target for the value

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
    fresh: bool = False  # in a new process of Carnot, and only one round


def ragged(count, mean, longest):
    """Lengths around a mean like those of trajectories: many short ones, a few long ones."""
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
    figure = Figure(f"{name} of {tokens} tokens, {NAMES[shape]}", "seconds", tokens, ratios=ratios, fraction=fraction,
                    limit=lambda w, m: w.statistics_seconds(m, tokens, gradient))
    return Case(shape, {"do": "statistics", "tokens": tokens, "gradient": gradient, "clamp": clamp}, [figure],
                rounds=3)


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
        train_case(BIG, "ragged", ragged(8, 220, 768), 0.4, 4, 3, None, 3),
        statistics_case(BIG, 512, False, 0, {}, 0.90),
        statistics_case(BIG, 512, True, 0, {}, 0.65),
        statistics_case(BIG, 2048, False, 0, {}, 0.90),
        statistics_case(BIG, 2048, True, 0, {}, 0.65),
        statistics_case(BIG, 256, False, 0.3, {"transformers": 8}, None),
        statistics_case(BIG, 256, True, 0.3, {"transformers": 4}, None),
        memory_case(BIG, 2048, False),
        memory_case(BIG, 512, True),
        product_case(BIG, 256),
        product_case(BIG, 2048),
        decode_case(MIDDLE, 32, 128, 32, {"transformers": 4}, 0.60, 0.60),
        train_case(MIDDLE, "16 x 128", [128] * 16, 0.4, 16, 2, 0.60, 3, 2048),
        decode_case(TINY, 64, 128, 32, {"transformers": 15, "llama.cpp": 2}, 0.55),
        answers_case(TINY, 256, 32, 32, {"transformers": 5, "llama.cpp": 1.5}, 3),
        train_case(TINY, "16 x 128", [128] * 16, 1.0, 16, 1.5, 0.50, 3, 2048),
        train_case(TINY, "ragged", ragged(32, 300, 1024), 0.4, 4, 3, None, 2, 2048),
        gain_case(TINY, 32, 5, 100),
    ] + [case for shape in MIXERS for case in mixer_cases(shape)]


def mixer_cases(shape):
    aim = {"transformers": 1.5, "llama.cpp": 1}
    return [decode_case(shape, batch, 512, 32, aim, 0.6, 0.6) for batch in (1, 8, 32)] + [
        train_case(shape, "4 x 512", [512] * 4, 0.4, 4, 1.5, 0.6, 3, 2048)]


def made_small(case):
    """The same case with the smallest shape and sizes of a few tokens."""
    request = {k: min(v, 40) if k in ("prompt", "tokens", "rows") else v for k, v in case.request.items()}
    if "lengths" in request:
        request["lengths"] = [n // 8 for n in request["lengths"]]
    return dataclasses.replace(case, shape=SMALLEST, request=request, rounds=2)
