#!/usr/bin/env python3
"""examples/trainers/carnot_trl.py in the real GRPOTrainer, on a model of 10,000 parameters.

    PYTHONPATH=FOLDER_OF_CARNOT_RL_CORE .cache/test_packages/trainers/bin/python tests/wheels/trl_test.py
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np
import torch
from accelerate.utils import gather_object
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, PrinterCallback, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer

import carnot_rl_core as carnot

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "trainers"))
from carnot_trl import CarnotTrainer  # noqa: E402

WORDS = ["<pad>", "<eos>", "<unk>"] + [f"w{i}" for i in range(29)]


def tokenizer():
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def model():
    torch.manual_seed(1)
    return Qwen2ForCausalLM(Qwen2Config(
        vocab_size=len(WORDS), hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=64, initializer_range=0.5, pad_token_id=0, eos_token_id=1))


def reward(completions, completion_ids, **_):
    return [float(np.mean(np.array(ids) % 2)) for ids in completion_ids]


def first_half(ids):
    return [i < len(ids) // 2 for i in range(len(ids))]


class Recorder(CarnotTrainer):
    """Keeps what the trainer generated and the entropies that TRL itself computes."""

    def _generate_and_score_completions(self, inputs):
        batch = super()._generate_and_score_completions(inputs)
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
        attention = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
        with torch.no_grad():
            _, entropies, _ = self._get_per_token_logps_and_entropies(
                self.model, ids, attention, batch["completion_ids"].size(1), compute_entropy=True)
        self.seen = getattr(self, "seen", []) + [{"batch": batch, "entropies": entropies.double().numpy(),
                                                  "scores": self.scores}]
        return batch


class Trl(unittest.TestCase):
    def trained(self, method, options=None, config={}, rewarded=reward, **more):
        with tempfile.TemporaryDirectory() as folder:
            settings = {"output_dir": folder, "per_device_train_batch_size": 8, "num_generations": 4, "max_steps": 3,
                        "max_completion_length": 9, "logging_steps": 1, "report_to": [], "use_cpu": True,
                        "learning_rate": 1e-2, "save_strategy": "no", "disable_tqdm": True, "seed": 3,
                        "gradient_accumulation_steps": 1, "temperature": 0.8} | config
            model().save_pretrained(folder)  # the reference model is loaded from there
            prompts = Dataset.from_dict({"prompt": [f"w{i} w{i + 1}" for i in range(9)]})
            trainer = Recorder(method=method, method_options=options, model=folder, reward_funcs=rewarded,
                               args=GRPOConfig(**settings), processing_class=tokenizer(), train_dataset=prompts, **more)
            trainer.remove_callback(PrinterCallback)
            before = [weight.detach().clone() for weight in trainer.model.parameters()]
            trainer.train()
        self.assertEqual(len(trainer.seen), 3)
        self.assertTrue(any((a != b).any() for a, b in zip(before, trainer.model.parameters())))
        self.assertTrue(all(np.isfinite(log["loss"]) for log in trainer.state.log_history if "loss" in log))
        return trainer

    def rows(self, seen):
        """The trajectories of one batch as rows of a rollout file, each without its padding."""
        masks = gather_object(list(seen["batch"]["completion_mask"].numpy()))
        for i, (mask, entropies) in enumerate(zip(masks, gather_object(list(seen["entropies"])))):
            length = int(mask.sum())
            yield {"uid": f"task {i // 4}", "traj_id": i, "score": seen["scores"][i],
                   "token_ids": np.zeros(length, int), "loss_mask": np.ones(length, bool),
                   "entropy_old": entropies[:length],
                   "turns": [{"start": 0, "end": length}]}

    def expect_advantages(self, seen, expected):
        found = seen["batch"]["advantages"].numpy()
        for row, mask, right in zip(found, seen["batch"]["completion_mask"].bool().numpy(), expected):
            np.testing.assert_allclose(row[mask], right, rtol=2e-4, atol=2e-5)
            self.assertTrue((row[~mask] == 0).all())

    def test_without_an_add_on_advantages_are_trls_own(self):
        trainer = self.trained("grpo")
        for seen in trainer.seen:
            scores = np.array(seen["scores"]).reshape(2, 4)
            own = (scores - scores.mean(axis=1, keepdims=True)) / (scores.std(axis=1, ddof=1, keepdims=True) + 1e-4)
            expected = np.broadcast_to(own.reshape(8, 1), seen["batch"]["advantages"].shape)
            mask = seen["batch"]["completion_mask"].numpy()
            np.testing.assert_allclose(seen["batch"]["advantages"].numpy(), expected * mask, rtol=5e-3, atol=1e-6)

    def test_aem_scales_advantages_by_the_entropies_that_trl_measures(self):
        for seen in self.trained("grpo + aem", {"aem.gate": 0}).seen:
            credit = carnot.credit(list(self.rows(seen)), "grpo + aem", {"aem.gate": 0})
            self.expect_advantages(seen, [one.advantage for one in credit])

    def test_a_group_may_span_processes(self):
        command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", __file__]
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("the advantages are right"), 2, done.stdout)

    def of_a_process(self):
        trainer = self.trained("grpo + aem", {"aem.gate": 0}, {"per_device_train_batch_size": 6})
        own = slice(6 * trainer.accelerator.process_index, 6 * (trainer.accelerator.process_index + 1))
        for seen in trainer.seen:
            rows = list(self.rows(seen))
            self.assertEqual(len(rows), 12)
            credit = carnot.credit(rows, "grpo + aem", {"aem.gate": 0})
            self.expect_advantages(seen, [one.advantage for one in credit[own]])
        print("the advantages are right\n", end="")

    def test_aepo_scales_advantages_over_the_batch(self):
        for seen in self.trained("grpo + aepo").seen:
            rows = list(self.rows(seen))
            entropies = np.concatenate([row["entropy_old"] for row in rows])
            centre, deviation = entropies.mean(), entropies.std(ddof=1)
            self.expect_advantages(seen, [one.advantage * (1 + 0.2 * (row["entropy_old"] - centre) / deviation)
                                          for one, row in zip(carnot.credit(rows, "grpo"), rows)])

    def test_actfocus_weighs_actions_and_keeps_the_mean_weight(self):
        trainer = self.trained("grpo + actfocus", config={"beta": 0.01}, action_tokens=first_half)
        for seen in trainer.seen:
            rows = list(self.rows(seen))
            _, energy = trainer.measure(trainer.ref_model, seen["batch"])
            width = seen["batch"]["completion_ids"].size(1)
            for row, values in zip(rows, energy.double().numpy()):
                length = len(row["token_ids"])
                row["energy_ref"] = values[:length]
                row["segment"] = ["action" if i < width // 2 else "think" for i in range(length)]
            credit = carnot.credit(rows, "grpo + actfocus")
            mean = np.concatenate([one.weight for one in credit]).mean()
            self.expect_advantages(seen, [one.advantage * one.weight / mean for one in credit])

    def test_actfocus_needs_the_reference(self):
        with self.assertRaisesRegex(ValueError, "beta: expected a number above 0"):
            self.trained("grpo + actfocus", action_tokens=first_half)

    def test_a2tgpo_adds_gains_and_widens_clip_ranges(self):
        gains, ranges, loss = np.random.default_rng(5).normal(size=8), [], GRPOTrainer._compute_loss

        def watched(trainer, model, inputs):
            ranges.append((trainer.epsilon_low, trainer.epsilon_high, inputs["clip_scale"]))
            return loss(trainer, model, inputs)

        with unittest.mock.patch.object(GRPOTrainer, "_compute_loss", watched):
            trainer = self.trained("a2tgpo", info_gains=lambda inputs, batch: [[gain] for gain in gains],
                                   config={"num_iterations": 2, "max_steps": 6, "epsilon": 3e-3, "epsilon_high": 4e-3})
        self.assertEqual(len(ranges), 6)
        for low, high, scale in ranges:
            torch.testing.assert_close(low, 3e-3 * scale)
            torch.testing.assert_close(high, 4e-3 * scale)
        for seen in trainer.seen:
            rows = list(self.rows(seen))
            for row, gain in zip(rows, gains):
                row["turns"][0]["info_gain"] = gain
            credit = carnot.credit(rows, "a2tgpo")
            self.expect_advantages(seen, [one.advantage for one in credit])
            for row, one in zip(seen["batch"]["clip_scale"].numpy(), credit):
                np.testing.assert_allclose(row[:len(one.clip_scale)], one.clip_scale, rtol=1e-6)
        self.assertEqual((trainer.epsilon_low, trainer.epsilon_high), (3e-3, 4e-3))

    def test_a_completion_that_no_function_scores_is_left_out(self):
        def some(completion_ids, **_):
            return [None if i == 1 else float(i) for i in range(len(completion_ids))]

        for seen in self.trained("grpo + aem", rewarded=some).seen:
            self.assertTrue((seen["batch"]["advantages"][1] == 0).all())
            rows = [row for i, row in enumerate(self.rows(seen)) if i != 1]
            credit = [one.advantage for one in carnot.credit(rows, "grpo + aem")]
            self.expect_advantages(seen, [credit[0], np.zeros(len(seen["batch"]["completion_mask"][1].nonzero())),
                                          *credit[1:]])

    def test_aents_coefficient_follows_the_entropy(self):
        options = {"aent.adaptive.warmup": 0, "aent.adaptive.low": 4, "aent.adaptive.high": 5}
        trainer = self.trained("grpo + aent", options)
        expected = carnot.EntropyCoefficient(2e-4, low=4, high=5, rate=0.001, least=1e-5, most=0.003, warmup=0)
        logs = [log for log in trainer.state.log_history if "entropy" in log]
        self.assertEqual(len(logs), 3)
        for log in logs:
            self.assertAlmostEqual(log["entropy_coef"], expected.coefficient, 9)
            expected.update(log["entropy"])
        self.assertGreater(trainer.entropy_coef, 2e-4)
        self.assertAlmostEqual(trainer.entropy_coef, expected.coefficient, 9)


if __name__ == "__main__":
    if "LOCAL_RANK" in os.environ:
        Trl().of_a_process()
    else:
        unittest.main()
