"""Reward functions for tests/process/dataset_test.cpp."""
import os
import time


def contains(completions, answer, **columns):
    return [1.0 if a in c else 0.0 for c, a in zip(completions, answer)]


def uses_columns(prompts, completions, level, answers):
    return [0.5 if p.endswith("?") and l == 2 and a == ["4"] else 0 for p, l, a in zip(prompts, level, answers)]


def wants_more(completions, mood):
    return [0.0] * len(completions)


def raises_for_five(completions, **columns):
    if any("5" in c for c in completions):
        raise ValueError("not five")
    return [2.0] * len(completions)


def none_for_five(completions, **columns):
    return [None if "5" in c else 2.0 for c in completions]


def dies_for_five(completions, **columns):
    if any("5" in c for c in completions):
        os._exit(1)
    return [2.0] * len(completions)


def not_finite(completions, **columns):
    return [float("nan")] * len(completions)


def too_few(completions, **columns):
    return []


def slow_each_call(completions, **columns):
    time.sleep(0.05)
    return [float(len(completions))] * len(completions)


def longest_of_group(completions, prompts, **columns):
    longest = {}
    for prompt, completion in zip(prompts, completions):
        longest[prompt] = max(longest.get(prompt, 0), len(completion))
    return [float(len(c) == longest[p] and len(completions) > 1) for p, c in zip(prompts, completions)]
