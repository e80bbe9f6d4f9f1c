#!/usr/bin/env python3
"""examples/trainers/carnot_verl.py in the real verl: what its trainer calls for advantages and for the loss.

    PYTHONPATH=FOLDER_OF_CARNOT_RL_CORE .cache/test_packages/trainers/bin/python tests/wheels/verl_test.py
"""
import json
import lzma
import os
import pathlib
import sys
import unittest
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "trainers"))
os.environ["VERL_USE_EXTERNAL_MODULES"] = "carnot_verl"  # as a user has verl load it
warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from verl import DataProto  # noqa: E402
from verl.trainer.config import AlgoConfig  # noqa: E402
from verl.trainer.ppo import core_algos, ray_trainer  # noqa: E402
from verl.workers.config import ActorConfig  # noqa: E402

import carnot_rl_core as carnot  # noqa: E402


def recorded(file, rule):
    lines = lzma.open(ROOT / "tests" / "recorded" / "credit" / f"{file}.jsonl.xz", "rt").read().splitlines()
    return [case for case in map(json.loads, lines) if case["rule"] == rule]


def batch_of(random):
    """Two groups of four trajectories, with two turns in most."""
    mask = torch.tensor(random.random((8, 9)) < 0.8)
    mask[:, 0], mask[:, 4] = True, False
    rewards = torch.zeros(8, 9, dtype=torch.float64)
    rewards[:, 8] = torch.tensor(random.random(8))
    tensors = {"token_level_rewards": rewards, "response_mask": mask.long(),
               "old_log_probs": torch.tensor(-random.exponential(size=(8, 9)))}
    lists = {"uid": np.array(["a"] * 4 + ["b"] * 4, dtype=object)}
    return DataProto.from_dict(tensors=tensors, non_tensors=lists)


def rows_of(data, **signals):
    mask = data.batch["response_mask"].bool().numpy()
    for i, row in enumerate(mask):
        begins = [t for t in range(len(row)) if row[t] and (t == 0 or not row[t - 1])]
        edges = [0, *begins[1:], len(row)]
        yield {"uid": data.non_tensor_batch["uid"][i], "traj_id": i, "loss_mask": row,
               "score": data.batch["token_level_rewards"][i].sum().item(), "token_ids": np.zeros(len(row), int),
               "turns": [{"start": a, "end": b} for a, b in zip(edges, edges[1:])]
               } | {name: np.where(row, values[i], np.nan) for name, values in signals.items()}


class Estimators(unittest.TestCase):
    def setUp(self):
        self.data = batch_of(np.random.default_rng(7))
        self.mask = self.data.batch["response_mask"].bool().numpy()
        self.surprisal = -self.data.batch["old_log_probs"].numpy()

    def advantages(self, name):
        config = AlgoConfig(adv_estimator=name)
        return ray_trainer.compute_advantage(self.data, adv_estimator=name, config=config).batch["advantages"].numpy()

    def expect(self, name, expected):
        found = self.advantages(name)
        for row, mask, right in zip(found, self.mask, expected):
            np.testing.assert_allclose(row[mask], right[mask], rtol=0, atol=1e-12)
            self.assertTrue((row[~mask] == 0).all())

    def test_aem_takes_surprisals_where_verl_has_no_entropies(self):
        rows = list(rows_of(self.data, entropy_old=self.surprisal))
        self.expect("carnot_aem", [one.advantage for one in carnot.credit(rows, "grpo + aem")])

    def test_aem_takes_entropies_where_the_batch_has_them(self):
        entropies = np.random.default_rng(8).random((8, 9))
        self.data.batch["entropys"] = torch.tensor(entropies)
        rows = list(rows_of(self.data, entropy_old=entropies))
        self.expect("carnot_aem", [one.advantage for one in carnot.credit(rows, "grpo + aem")])

    def test_aepo_scales_advantages_over_the_batch(self):
        sampled = self.surprisal[self.mask]
        factors = 1 + 0.2 * (self.surprisal - sampled.mean()) / sampled.std(ddof=1)
        credit = carnot.credit(list(rows_of(self.data)), "grpo")
        self.expect("carnot_aepo", [one.advantage * row for one, row in zip(credit, factors)])

    def test_actfocus_weighs_actions(self):
        self.data.non_tensor_batch["actions"] = np.array([np.arange(9) > 4] * 8)
        rows = list(rows_of(self.data, logp_old=-self.surprisal))
        for row in rows:
            kinds = np.where(np.arange(9) > 4, "action", "think")
            row["segment"] = np.where(row["loss_mask"], kinds, "observation").tolist()
        credit = carnot.credit(rows, "grpo + actfocus", {"actfocus.signal": "surprisal"})
        mean = np.concatenate([one.weight[mask] for one, mask in zip(credit, self.mask)]).mean()
        self.expect("carnot_actfocus", [one.advantage * one.weight / mean for one in credit])

    def test_a2tgpo_compares_gains_of_the_same_turn(self):
        rows = list(rows_of(self.data))
        gains = np.empty(8, dtype=object)
        for i, (row, random) in enumerate(zip(rows, np.random.default_rng(9).spawn(8))):
            gains[i] = random.normal(size=len(row["turns"])).tolist()
            for turn, gain in zip(row["turns"], gains[i]):
                turn["info_gain"] = gain
        self.data.non_tensor_batch["info_gains"] = gains
        self.expect("carnot_a2tgpo", [one.advantage for one in carnot.credit(rows, "a2tgpo")])

    def test_plain_grpo_is_verls_own(self):
        core_algos.ADV_ESTIMATOR_REGISTRY.pop("carnot_grpo", None)
        import carnot_verl
        carnot_verl.register("carnot_grpo", "grpo", {})
        ours = self.advantages("carnot_grpo")
        theirs = ray_trainer.compute_advantage(self.data, adv_estimator=core_algos.AdvantageEstimator.GRPO,
                                               config=AlgoConfig()).batch["advantages"].numpy()
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


class AepoLoss(unittest.TestCase):
    def test_recorded_losses_and_gradients(self):
        loss_of = core_algos.get_policy_loss_fn("carnot_aepo")
        compared = 0
        for case in recorded("loss_aepo", "aepo"):
            options = case["options"]
            if not options["balanced_clipping"]:
                continue
            width = options["padded_length"]
            columns = {name: torch.zeros(len(case["trajectories"]), width, dtype=torch.float64)
                       for name in ("logp_old", "logp", "advantage", "entropy", "sampled")}
            for name, column in columns.items():
                for i, trajectory in enumerate(case["trajectories"]):
                    values = [float(token[name] or 0) for token in trajectory["tokens"]]
                    column[i, :len(values)] = torch.tensor(values, dtype=torch.float64)
            mask = columns["sampled"].bool()
            if options["balanced_advantage"]:
                factors = carnot.entropy_scale(columns["entropy"][mask].numpy(), options["a"])
                columns["advantage"][mask] *= torch.from_numpy(factors)
            log_prob = columns["logp"].requires_grad_()
            config = ActorConfig(strategy="fsdp", rollout_n=1, clip_ratio_low=options["eps_low"],
                                 clip_ratio_high=options["eps_high"], clip_ratio_c=options["dual_clip"],
                                 ppo_micro_batch_size_per_gpu=1, ppo_mini_batch_size=1)
            loss, _ = loss_of(columns["logp_old"], log_prob, columns["advantage"], mask.double(),
                              options["aggregation"], config)
            gradient, = torch.autograd.grad(loss, log_prob)
            # The recorded program divides by a sequence's tokens, this verl by 1e-8 more.
            np.testing.assert_allclose(loss.item(), case["expected"]["loss"], rtol=0, atol=2e-8, err_msg=case["id"])
            for row, right in zip(gradient, case["expected"]["grad_logp"]):
                right = [0 if value is None else value for value in right]
                np.testing.assert_allclose(row[:len(right)], right, rtol=0, atol=2e-8, err_msg=case["id"])
            compared += 1
        self.assertEqual(compared, 51)


if __name__ == "__main__":
    unittest.main()
