#!/usr/bin/env python3
"""Runs published programs on the recorded inputs of tests/recorded/credit and compares their results.

    python3 -m venv .recording && .recording/bin/pip install numpy==2.2.6 torch==2.13.0
    .recording/bin/pip install --no-deps --target .recording/verl verl==0.7.0
    .recording/bin/pip install --no-deps --target .recording/verl-0.4 verl==0.4.0
    .recording/bin/python tools/golden/published_credit.py verl=.recording/verl verl-0.4=.recording/verl-0.4

An argument NAME=FOLDER says where a program is; the names and commits are those of SOURCES below, and rules of programs
that are not named are left out. verl 0.7.0 is the release nearest to the recorded commit, and 0.4.0 has the older forms
that its forks carry. --write replaces recorded results that differ.

Everything is computed in double precision: that is the default type, and casts to single precision in the programs'
text are read as casts to double. torch.compile does nothing. Of a program only the files in SOURCES are executed
(published_program.py).
"""
import argparse
import json
import lzma
import os
import pathlib

import numpy as np
import torch

from published_program import Program

RECORDED = pathlib.Path(__file__).resolve().parents[2] / "tests" / "recorded" / "credit"
VERL = {"verl.utils": "verl/utils/groupwise.py", "verl.utils.import_utils": "verl/utils/import_utils.py",
        "verl.utils.torch_functional": "verl/utils/torch_functional.py",
        "verl.trainer.ppo.core_algos": "verl/trainer/ppo/core_algos.py"}
# Name, and module and file of what is executed. Whitening in RAGEN is verl's, which must be named too.
SOURCES = {
    "verl": VERL,
    "verl-0.4": {name: VERL[name] for name in ("verl.utils.torch_functional", "verl.trainer.ppo.core_algos")},
    "verl-agent": {name: VERL[name] for name in ("verl.utils.torch_functional", "verl.trainer.ppo.core_algos")}
    | {"gigpo.core_gigpo": "gigpo/core_gigpo.py"},  # xlan156/verl-agent 8ca3a467
    "RAGEN": {"ragen.trainer.core_algos": "ragen/trainer/core_algos.py"},  # RAGEN-AI/RAGEN 5eb79b82
    "AReaL": {"recipe.AEnt.functional": "recipe/AEnt/functional.py"},  # inclusionAI/AReaL a0ec9cee
}
DOUBLE = {"torch.float32": "torch.float64", "np.float32": "np.float64", ".float()": ".double()"}


class Batch:
    """A case's trajectories, padded to one width."""

    def __init__(self, case):
        self.rows = case["trajectories"]
        self.lengths = [len(row["tokens"]) for row in self.rows]
        self.width = case["options"].get("padded_length", max(self.lengths))
        self.mask = self.column("sampled")
        self.groups = np.array([row["group"] for row in self.rows], dtype=object)

    def column(self, name):
        values = torch.zeros(len(self.rows), self.width)
        for i, row in enumerate(self.rows):
            values[i, :self.lengths[i]] = torch.tensor([float(token[name]) for token in row["tokens"]])
        return values

    def rewards(self):
        if "reward" in self.rows[0]["tokens"][0]:
            return self.column("reward")
        values = torch.zeros(len(self.rows), self.width)
        for i, row in enumerate(self.rows):
            values[i, self.lengths[i] - 1] = row["reward"]
        return values

    def lists(self, values):
        return [row[:length] for row, length in zip(values.tolist(), self.lengths)]

    def sampled(self, values):
        return [[value if kept else None for value, kept in zip(*pair)]
                for pair in zip(self.lists(values), self.lists(self.mask))]

    def advantage(self, answer):
        return {"advantage": self.sampled(answer[0]), "returns": self.sampled(answer[1])}

    def loss(self, name, gradient, function):
        x = self.column(name).requires_grad_()
        answer = function(x)
        value, further = answer if isinstance(answer, tuple) else (answer, {})
        value.backward()
        return {"loss": value.item(), gradient: self.lists(x.grad), **further}


def settings(base=object, **values):
    """A configuration that is read by attribute and by get()."""
    found = type("Settings", (base,), {"get": lambda self, name, default=None: vars(self).get(name, default)})()
    vars(found).update(values)
    return found


def outcome(name, *options):
    """An estimator of the outcome. options: the recorded option and the function's parameter, in pairs."""
    def run(program, case):
        b = Batch(case)
        given = {parameter: case["options"][option] for option, parameter in options}
        return b.advantage(getattr(program, name)(b.rewards(), b.mask, b.groups, **given))
    return run


def configured(name, with_groups=True):
    def run(program, case):
        b, o = Batch(case), case["options"]
        config = settings(gamma=o.get("gamma"), norm_adv_by_std_in_grpo=o.get("norm_by_std"))
        groups = {"index": b.groups} if with_groups else {}
        return b.advantage(getattr(program, name)(b.rewards(), b.mask, config=config, **groups))
    return run


def gae(program, case):
    b, o = Batch(case), case["options"]
    return b.advantage(program.compute_gae_advantage_return(b.rewards(), b.column("value"), b.mask, o["gamma"],
                                                            o["lambda"]))


def bilevel_gae(program, case):
    b, o = Batch(case), case["options"]
    return b.advantage(program.compute_bi_level_gae_advantage_return(
        b.rewards(), b.column("value"), b.mask, o["gamma"], o["lambda"], o["high_level_gamma"]))


def adaptive_kl(program, case):
    o, found = case["options"], []
    controller = program.AdaptiveKLController(o["init"], o["target"], o["horizon"])
    for step in case["sequence"]:
        controller.update(step["kl"], step["n_steps"])
        found.append(float(controller.value))
    return {"coef": found}


def agg_loss(program, case):
    b = Batch(case)
    return b.loss("token_loss", "grad_token_loss",
                  lambda x: program.agg_loss(x, b.mask, case["options"]["aggregation"]))


def kl_penalty(program, case):
    b = Batch(case)
    x = b.column("logp").requires_grad_()
    kl = program.kl_penalty(x, b.column("logp_ref"), case["options"]["estimator"])
    (kl * b.mask).sum().backward()
    return {"kl": b.sampled(kl), "grad_logp_of_sum": b.lists(x.grad)}


def value_loss(program, case):
    b, o = Batch(case), case["options"]
    return b.loss("value", "grad_value", lambda x: program.compute_value_loss(
        x, b.column("return"), b.column("value_old"), b.mask, o["eps_v"], o["aggregation"])[0])


def policy_loss(name):
    def run(program, case):
        b, o = Batch(case), case["options"]
        config = settings(program.ActorConfig, clip_ratio=None, clip_ratio_low=o["eps_low"],
                          clip_ratio_high=o["eps_high"], clip_ratio_c=o.get("dual_clip"),
                          global_batch_info=o.get("normaliser", {}))
        weights = b.column("is_weight") if o.get("rollout_is_weight") else None

        def compute(x):
            loss, metrics = getattr(program, name)(b.column("logp_old"), x, b.column("advantage"), b.mask,
                                                   o["aggregation"].split()[0], config, weights)
            return loss, {"clipfrac": metrics["actor/pg_clipfrac"], "approx_kl": metrics["actor/ppo_kl"],
                          "clipfrac_lower": metrics["actor/pg_clipfrac_lower"]}
        return b.loss("logp", "grad_logp", compute)
    return run


def older_policy_loss(program, case):
    b, o = Batch(case), case["options"]
    return b.loss("logp", "grad_logp", lambda x: program.compute_policy_loss(
        b.column("logp_old"), x, b.column("advantage"), b.mask, None, o["eps_low"], o["eps_high"], o["dual_clip"],
        o["aggregation"])[0])


def clamped_entropy(program, case):
    x = torch.tensor(case["logits"]).requires_grad_()
    entropy = program.clamped_softmax_entropy(x, case["options"]["p"])
    entropy.sum().backward()
    return {"entropy": entropy.tolist(), "grad_logits": x.grad.tolist()}


class Rows:
    """A case's rows, each the response of one step of an environment; the score is on its last token."""

    def __init__(self, case):
        rows = case["rows"]
        width = max(row["n_tokens"] for row in rows)
        self.mask = torch.tensor([[float(t < row["n_tokens"]) for t in range(width)] for row in rows])
        self.scores = torch.zeros(len(rows), width)
        for i, row in enumerate(rows):
            penalty = case["options"]["invalid_penalty"] * row["invalid"]
            self.scores[i, row["n_tokens"] - 1] = row["episode_reward"] - penalty
        self.groups, self.trajectories, self.anchors = (
            np.array([row.get(name) for row in rows], dtype=object) for name in ("group", "traj", "anchor"))


def gigpo(program, case):
    b, o = Rows(case), case["options"]
    answer, _ = program.compute_gigpo_outcome_advantage(
        b.scores, torch.tensor(case["expected"]["step_return"]), b.mask, b.anchors, b.groups, b.trajectories, o["eps"],
        o["step_advantage_w"], o["mode"], o["similarity"], o["similarity_thresh"])
    return {"advantage": answer[:, 0].tolist()}


def rows(name, *options):
    def run(program, case):
        b, o = Rows(case), case["options"]
        given = {parameter: o[option] for option, parameter in options}
        answer, _ = getattr(program, name)(b.scores, b.mask, b.groups, b.trajectories,
                                           compute_mean_std_cross_steps=o["statistics"] == "rows", **given)
        return {"advantage": answer[:, 0].tolist()}
    return run


STD = ("norm_by_std", "norm_adv_by_std_in_grpo")
# File, and for each rule the source and what computes it.
RULES = {
    "adaptive_kl": {"adaptive_kl": ("verl", adaptive_kl)},
    "adv_gae": {"gae": ("verl", gae), "gae_legacy_no_skip": ("verl-0.4", gae)},
    "adv_grpo": {"grpo": ("verl", outcome("compute_grpo_outcome_advantage", STD)),
                 "grpo_vectorized": ("verl", outcome("compute_grpo_vectorized_outcome_advantage", STD))},
    "adv_other": {"gpg": ("verl", outcome("compute_gpg_outcome_advantage", ("f_norm", "f_norm"))),
                  "grpo_passk": ("verl", configured("compute_grpo_passk_outcome_advantage")),
                  "opo": ("verl", outcome("compute_opo_outcome_advantage"))},
    "adv_reinforce_pp": {
        "reinforce_pp_baseline": ("verl", outcome("compute_reinforce_plus_plus_baseline_outcome_advantage")),
        "reinforce_pp": ("verl", configured("compute_reinforce_plus_plus_outcome_advantage", with_groups=False))},
    "adv_rloo": {"rloo": ("verl", outcome("compute_rloo_outcome_advantage")),
                 "rloo_vectorized": ("verl", outcome("compute_rloo_vectorized_outcome_advantage"))},
    "agg_loss": {"agg_head": ("verl", agg_loss), "agg_legacy": ("verl-0.4", agg_loss)},
    "kl_penalty": {"kl_head": ("verl", kl_penalty), "kl_legacy": ("verl-0.4", kl_penalty)},
    "loss_gspo": {"gspo": ("verl", policy_loss("compute_policy_loss_gspo"))},
    "loss_vanilla": {"ppo_clip": ("verl", policy_loss("compute_policy_loss_vanilla")),
                     "ppo_clip_legacy": ("verl-0.4", older_policy_loss)},
    "value_loss": {"value_clip": ("verl", value_loss), "value_clip_legacy": ("verl-0.4", value_loss)},
    "adv_bilevel_gae": {"bilevel_gae": ("RAGEN", bilevel_gae)},
    "adv_rows_verl_agent": {"grpo_rows": ("verl-agent", rows("compute_grpo_outcome_advantage", STD)),
                            "rloo_rows": ("verl-agent", rows("compute_rloo_outcome_advantage"))},
    "adv_gigpo": {"gigpo": ("verl-agent", gigpo)},
    "aent_entropy": {"aent_clamped_entropy": ("AReaL", clamped_entropy)},
}


def difference(found, expected):
    """The largest difference, relative to 1 + |expected|; unsampled tokens (null) are not compared."""
    if expected is None:
        return 0.0
    if isinstance(expected, list):
        assert len(found) == len(expected)
        return max((difference(*pair) for pair in zip(found, expected)), default=0.0)
    return abs(found - expected) / (1 + abs(expected))


def check(program, case):
    found = RULE_OF[case["rule"]][1](program, case)
    keys = [key for key in case["expected"] if key in found]
    assert keys, case["id"]
    return max(difference(found[key], case["expected"][key]) for key in keys), {key: found[key] for key in keys}


RULE_OF = {rule: how for rules in RULES.values() for rule, how in rules.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    folders = {name: pathlib.Path(folder) for name, folder in (one.split("=", 1) for one in arguments.sources)}
    os.environ["VERL_FORCE_DEVICE"] = "cpu"
    torch.set_default_dtype(torch.float64)
    torch.compile = lambda function=None, **_: function or (lambda inner: inner)
    for file in RULES:
        path = RECORDED / (file + ".jsonl.xz")
        cases = [json.loads(line) for line in lzma.open(path, "rt", encoding="utf-8")]
        different = False
        for rule, (source, _) in RULES[file].items():
            if source not in folders:
                continue
            also = {"verl.utils.torch_functional": folders["verl"] / "verl/utils/torch_functional.py"} \
                if source == "RAGEN" else None
            program = Program(folders[source], SOURCES[source], also, DOUBLE)
            mine = [case for case in cases if case["rule"] == rule]
            largest, equal = 0.0, 0
            for case in mine:
                distance, found = check(program, case)
                largest, equal = max(largest, distance), equal + (distance <= 1e-9)
                if distance > 1e-9:
                    different = True
                    case["expected"].update(found)
            print(f"{file:18} {rule:24} {source:10} {equal:4} of {len(mine):4} equal, largest difference {largest:.1e}")
        if arguments.write and different:
            text = "".join(json.dumps(case, separators=(",", ":")) + "\n" for case in cases)
            path.write_bytes(lzma.compress(text.encode(), check=lzma.CHECK_CRC32, preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main()
