#!/usr/bin/env python3
"""The installed package carnot_rl_core: its credit equals that of the program to the bit, and the recorded cases hold.

    venv/bin/python tests/wheels/core_test.py build/carnot
"""
import ast
import json
import lzma
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy
from numpy.testing import assert_array_equal

import carnot_rl_core as carnot

RECORDED = pathlib.Path(__file__).resolve().parents[1] / "recorded" / "credit"
COLUMNS = ("advantage", "weight", "clip_scale", "value_target")
PROGRAM = sys.argv.pop(1)


def recorded(file, rule):
    lines = lzma.open(RECORDED / f"{file}.jsonl.xz", "rt").read().splitlines()
    cases = [case for case in map(json.loads, lines) if case["rule"] == rule]
    assert len(cases) > 15, f"{file}: {len(cases)} cases of {rule}"
    return cases


def random_turns(random):
    """Tokens of two to four turns, as begin and end of prompt, sampled part and observation."""
    begin = 0
    for _ in range(random.integers(2, 5)):
        prompt, sampled, after = random.integers(1, 4), random.integers(1, 6), random.integers(0, 3)
        yield begin, begin + prompt, begin + prompt + sampled, begin + prompt + sampled + after
        begin += prompt + sampled + after


def random_row(random, group, member):
    """A trajectory with every signal that a rule of any method reads."""
    places = list(random_turns(random))
    length = places[-1][3]
    mask = numpy.zeros(length, bool)
    segment = ["prompt"] * length
    for _, begin, end, after in places:
        mask[begin:end] = True
        middle = int(random.integers(begin, end))
        segment[begin:after] = (["think"] * (middle - begin) + ["action"] * (end - middle) +
                                ["observation"] * (after - end))
    score = float(random.integers(0, 3)) / 2
    turns = [{"start": begin, "end": after, "reward": score if place == len(places) - 1 else 0.0,
              "info_gain": float(random.normal()), "anchor": f"state {random.integers(3)}"}
             for place, (begin, _, _, after) in enumerate(places)]
    row = {"uid": f"task {group}", "traj_id": f"{group}/{member}", "step": 1 + group % 2, "score": score,
           "turns": turns, "token_ids": random.integers(0, 1000, length), "loss_mask": mask, "segment": segment,
           "query_baseline": float(random.uniform())}
    for signal in ("logp_old", "logp_ref", "entropy", "entropy_old", "entropy_ref", "energy_ref", "value",
                   "advantage_oracle"):
        row[signal] = numpy.where(mask, random.normal(size=length), numpy.nan)
    return row


def random_rows(seed):
    random = numpy.random.default_rng(seed)
    return [random_row(random, group, member) for group in range(6) for member in range(4)]


def json_line(row):
    def plain(value):
        if isinstance(value, numpy.ndarray):
            numbers = value.astype(int) if value.dtype == bool else value
            return [None if number != number else number for number in numbers.tolist()]
        return value.item()
    return json.dumps(row, default=plain) + "\n"


def of_program(rows, method, options):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "rows.jsonl")
        path.write_text("".join(map(json_line, rows)))
        settings = [f"{key}={value}" for key, value in options.items()]
        done = subprocess.run([PROGRAM, "credit", path, "--method", method, *settings], capture_output=True, text=True)
        assert done.returncode == 0, f"{method}: {done.stderr}"
        return [json.loads(line) for line in done.stdout.splitlines()]


class Credit(unittest.TestCase):
    def expect_equal(self, method, options={}):
        rows = random_rows(len(method))
        expected = of_program(rows, method, options)
        found = carnot.credit(rows, method, options)
        self.assertEqual(len(found), len(rows))
        for one, line in zip(found, expected):
            self.assertEqual(one.dropped, line.get("dropped", False), method)
            for column in COLUMNS:
                numbers = numpy.array([numpy.nan if x is None else x for x in line[column]], dtype=float)
                assert_array_equal(getattr(one, column).view(numpy.uint64), numbers.view(numpy.uint64), method)
        return found

    def test_every_method_equals_the_program_to_the_bit(self):
        bases = 0
        for name in carnot.methods():
            try:
                carnot.branch_policy(name)
                bases += 1
                method = name
            except ValueError:  # an add-on
                method = f"grpo + {name}"
            with self.subTest(method):
                self.expect_equal(method)
        self.assertGreater(bases, 10)
        self.assertGreater(len(carnot.methods()), bases)

    def test_options_reach_the_method(self):
        plain, other = (self.expect_equal("grpo + aem", options) for options in ({}, {"aem.lambda": 0.25}))
        self.assertFalse(all(numpy.array_equal(a.advantage, b.advantage, equal_nan=True) for a, b in zip(plain, other)))
        self.expect_equal("starpo_s", {"filter.keep_share": 0.5, "objective.kl_in_reward": 0.01})

    def test_columns_stay_valid_after_their_owner(self):
        advantage = carnot.credit(random_rows(1), "grpo")[0].advantage
        before = advantage.copy()
        carnot.credit(random_rows(2), "grpo")
        assert_array_equal(advantage, before)

    def test_bad_input_is_named(self):
        rows = random_rows(3)
        del rows[2]["score"]
        rows[4]["loss_mask"] = rows[4]["loss_mask"][:-1]
        with self.assertRaisesRegex(ValueError, r"rows:3: .*score(.|\n)*rows:5: .*loss_mask"):
            carnot.credit(rows, "grpo")
        with self.assertRaisesRegex(ValueError, r"^options: aem\.lamda: .*did you mean"):
            carnot.credit(random_rows(3), "grpo + aem", {"aem.lamda": 1})
        with self.assertRaisesRegex(TypeError, r"rows:1\.token_ids: .*2 dimensions"):
            carnot.credit([{"token_ids": numpy.zeros((2, 2))}], "grpo")
        with self.assertRaisesRegex(TypeError, r"rows:1\.turns\[1\]\.reward: .*found .*object"):
            carnot.credit([{"turns": [{}, {"reward": object()}]}], "grpo")

    def test_recorded_advantages_of_grpo(self):
        for case in recorded("adv_grpo", "grpo"):
            rows = []
            for i, one in enumerate(case["trajectories"]):
                turns = [token["turn"] for token in one["tokens"]]
                spans = [{"start": turns.index(k), "end": len(turns) - turns[::-1].index(k)}
                         for k in sorted(set(turns))]
                rows.append({"uid": one["group"], "traj_id": i, "score": one["reward"], "turns": spans,
                             "token_ids": numpy.arange(len(turns)),
                             "loss_mask": numpy.array([token["sampled"] for token in one["tokens"]])})
            options = {"divide_by_std": case["options"]["norm_by_std"], "singleton": "raw"}
            for found, expected in zip(carnot.credit(rows, "grpo", options), case["expected"]["advantage"]):
                numbers = numpy.array(expected, dtype=float)  # None becomes NaN
                numpy.testing.assert_allclose(found.advantage, numbers, rtol=0, atol=1e-9, err_msg=case["id"])


def batch_of(rows):
    """The rows as padded arrays, and what batch_credit() does not take as one."""
    width = max(len(row["token_ids"]) for row in rows) + 2

    def padded(name, fill):
        return numpy.array([numpy.concatenate([row[name], [fill] * (width - len(row[name]))]) for row in rows])

    signals = {name: padded(name, numpy.nan) for name in ("logp_old", "logp_ref", "entropy_old", "entropy_ref",
                                                          "energy_ref", "value")}
    return {"groups": [row["uid"] for row in rows], "scores": [row["score"] for row in rows],
            "mask": padded("loss_mask", False).astype(bool), "actions": padded("segment", "") == "action",
            "turns": numpy.array([numpy.repeat(range(len(row["turns"]) + 1), numpy.diff(
                [turn["start"] for turn in row["turns"]] + [len(row["token_ids"]), width])) for row in rows]),
            "info_gains": [[turn["info_gain"] for turn in row["turns"]] for row in rows]} | signals


class Batches(unittest.TestCase):
    def rows(self, seed):
        """Without what rows say and batches do not: anchors of states, steps."""
        rows = random_rows(seed)
        for row in rows:
            row["step"] = 0
            for turn in row["turns"]:
                turn["anchor"] = ""
        return rows

    def test_credit_equals_that_of_rows_to_the_bit(self):
        for method in ("grpo", "grpo + aem", "rloo + aem", "a2tgpo", "grpo + actfocus", "starpo_s + aem", "dapo",
                       "reinforce_plus_plus", "igpo"):
            rows = self.rows(len(method))
            batch = batch_of(rows)
            found = carnot.batch_credit(method, **batch)
            for i, one in enumerate(carnot.credit(rows, method)):
                mask, own = batch["mask"][i], rows[i]["loss_mask"]
                self.assertEqual(found.dropped[i], one.dropped)
                for name, neutral in (("advantage", 0), ("weight", 0), ("clip_scale", 1)):
                    values = getattr(found, name)[i]
                    assert_array_equal(values[mask], neutral if one.dropped else getattr(one, name)[own], method)
                    self.assertTrue((values[~mask] == neutral).all())

    def test_advantages_of_aepo_are_scaled_by_entropy_over_the_batch(self):
        rows = self.rows(4)
        batch = batch_of(rows)
        entropies = batch["entropy_old"][batch["mask"]]
        factors = 1 + 0.2 * (entropies - entropies.mean()) / entropies.std(ddof=1)
        found = numpy.array(carnot.batch_credit("grpo + aepo", **batch).advantage)[batch["mask"]]
        plain = numpy.array(carnot.batch_credit("grpo", **batch).advantage)[batch["mask"]]
        numpy.testing.assert_allclose(found, plain * factors, rtol=1e-12, atol=1e-12)
        with self.assertRaisesRegex(ValueError, "entropy_old: this signal is missing"):
            carnot.batch_credit("grpo + aepo", [0, 0], [0, 1], batch["mask"][:2])

    def test_a_mean_with_weighted_advantages_is_the_weighted_mean(self):
        batch = batch_of(self.rows(6))
        found = carnot.batch_credit("grpo + actfocus", **batch)
        weight, advantage = numpy.array(found.weight), numpy.array(found.advantage)
        ratios = numpy.random.default_rng(3).uniform(0.5, 1.5, weight.shape)
        mask = batch["mask"]

        def surrogate(advantage):
            return numpy.minimum(ratios * advantage, ratios.clip(0.8, 1.2) * advantage)

        self.assertAlmostEqual(surrogate(numpy.array(found.weighted_advantage))[mask].mean(),
                               (weight * surrogate(advantage))[mask].sum() / weight[mask].sum(), 12)

    def test_a_trajectory_without_sampled_tokens_is_left_out(self):
        mask = numpy.array([[0, 1, 1], [0, 0, 0], [0, 1, 0]], bool)
        found = carnot.batch_credit("grpo", [1, 1, 1], [1, 7, 0], mask)
        alone = carnot.batch_credit("grpo", [1, 1], [1, 0], mask[[0, 2]])
        assert_array_equal(numpy.array(found.advantage)[[0, 2]], alone.advantage)
        self.assertEqual(found.dropped, [False, True, False])
        self.assertFalse(found.advantage[1].any())

    def test_the_objective_is_the_methods(self):
        objective = carnot.objective("a2tgpo")
        self.assertEqual((objective["ratio"], objective["clip_low"], objective["clip_high"]), ("turn", 3e-3, 4e-3))
        self.assertTrue(carnot.objective("grpo + aent")["adaptive_entropy.enabled"])
        self.assertEqual(carnot.objective("aepo", {"objective.clip_low": 0.1})["clip_low"], 0.1)
        with self.assertRaisesRegex(ValueError, "grpp"):
            carnot.objective("grpp")


class Filters(unittest.TestCase):
    def kept(self, scores, *arguments):
        arrays = [numpy.array(group, dtype=float) for group in scores]
        return [i for i, keep in enumerate(carnot.keep_groups(arrays, *arguments)) if keep]

    def test_recorded_groups(self):
        for case in recorded("dapo", "dapo_group_filter"):
            self.assertEqual(self.kept(case["metric"], "drop_zero_variance"),
                             case["expected"]["kept_by_exact_equality"])
        for case in recorded("ragen_filter", "ragen_variance_filter"):
            name = "keep_least_varied" if case["options"]["type"] == "std_rev" else "keep_most_varied"
            if not case["expected"]["tie_at_boundary"]:
                self.assertEqual(self.kept(case["scores"], name, case["options"]["ratio"]),
                                 case["expected"]["kept_groups"])

    def test_names_are_checked(self):
        with self.assertRaisesRegex(ValueError, "expected one of none, drop_zero_variance"):
            carnot.keep_groups([], "variance")


class Branching(unittest.TestCase):
    def test_recorded_entropies(self):
        for case in recorded("branching", "branch_entropy"):
            candidates = [numpy.array(token) for token in case["candidate_logprobs"]]
            found = carnot.turn_entropy_of_candidates(candidates, case["options"]["vocabulary"],
                                                      case["options"]["max_tokens"])
            self.assertAlmostEqual(found, case["expected"]["entropy"], 9)

    def test_recorded_decisions(self):
        for case in recorded("branching", "branch_decision"):
            options = {"base": case["options"]["p0"], "weight": case["options"]["entropy_weight"]}
            arpo = carnot.branch_policy("arpo", {f"branch.{key}": value for key, value in options.items()})
            options["penalty"] = case["options"]["penalty_slope"]
            aepo = carnot.branch_policy("aepo", {"preset": "code"} |
                                        {f"branch.{key}": value for key, value in options.items()})
            expected = case["expected"]
            for draw, by_arpo, by_aepo in zip(case["draws"], expected["arpo_branch"], expected["aepo_branch"]):
                at = {"turn_entropy": draw["h_now"], "initial_entropy": draw["h_init"], "trajectories": 1, "budget": 2,
                      "consecutive": draw["consecutive"], "uniform": draw["u"]}
                self.assertEqual((arpo.branch_here(**at), aepo.branch_here(**at)), (by_arpo, by_aepo), case["id"])

    def test_recorded_budgets(self):
        for case in recorded("branching", "aepo_budget"):
            options = {"preset": "code", "branch.probe": True, "branch.probe_slope": case["options"]["beta"]}
            policy = carnot.branch_policy("aepo", options)
            self.assertTrue(policy.wants_probe)
            self.assertEqual(policy.initial(case["options"]["n"], case["h_root"], case["h_steps"]),
                             case["expected"]["initial_rollouts"])

    def test_trees_grow_by_a_plan(self):
        plan = carnot.branch_policy("tree_grpo").expansion(8)
        self.assertEqual(sum(plan.leaves), 8)
        self.assertIsNone(carnot.branch_policy("grpo").expansion(8))
        self.assertFalse(carnot.branch_policy("grpo").ever_branches)


class Coefficients(unittest.TestCase):
    def test_recorded_entropy_coefficients(self):
        for case in recorded("aent_coeff", "aent_adaptive_coefficient"):
            options = case["options"]
            coefficient = carnot.EntropyCoefficient(
                options["initial"], low=options["entropy_low"], high=options["entropy_high"], rate=options["coeff_lr"],
                least=options["box_low"], most=options["box_high"], warmup=options["warmup_steps"])
            coefficient.step = options["first_global_step"]
            for entropy, expected in zip(case["entropy"], case["expected"]["coef_after_step"]):
                coefficient.update(entropy)
                self.assertAlmostEqual(coefficient.coefficient, expected, 12, case["id"])

    def test_recorded_kl_coefficients(self):
        for case in recorded("adaptive_kl", "adaptive_kl"):
            options = case["options"]
            coefficient = carnot.KlCoefficient(options["init"], target=options["target"], horizon=options["horizon"],
                                               clip=options["clip"])
            for step, expected in zip(case["sequence"], case["expected"]["coef"]):
                coefficient.update(step["kl"], step["n_steps"])
                self.assertAlmostEqual(coefficient.coefficient, expected, 12, case["id"])


class Graders(unittest.TestCase):
    def test_graders_score_answers(self):
        self.assertEqual(carnot.Grader("maths", place="boxed").score(r"so \boxed{0.5}", [r"\frac{1}{2}"]), 1)
        self.assertEqual(carnot.Grader("exact_match", place="tag").score("<answer> The Cat </answer>", ["cat"]), 1)
        self.assertEqual(carnot.Grader("pattern", pattern="^a+$").score("aab"), 0)
        self.assertAlmostEqual(carnot.answer_f1("a red cat", ["red dog"]), 0.5)
        self.assertEqual(carnot.boxed_content(r"\boxed{a{b}}"), "a{b}")
        self.assertIsNone(carnot.answer_at("tag", "nothing"))
        for name in carnot.graders():
            self.assertIsInstance(carnot.Grader(name).score("B", ["B"]) if name != "pattern" else 0.0, float)
        with self.assertRaisesRegex(ValueError, "golds: expected the answers"):
            carnot.Grader("maths").score("1")
        with self.assertRaisesRegex(ValueError, "name: expected one of .*maths.*, found math"):
            carnot.Grader("math")


class Documentation(unittest.TestCase):
    def test_examples_hold(self):
        page = (RECORDED.parents[2] / "docs" / "python.md").read_text()
        examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        self.assertEqual(len(examples), 5)
        for example in examples:
            exec(compile(example, "docs/python.md", "exec"), {})

    def test_stubs_name_everything(self):
        folder = pathlib.Path(carnot.__file__).parent
        self.assertTrue((folder / "py.typed").exists())
        stub = ast.parse((folder / "_core.pyi").read_text())
        named = {node.name for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        self.assertEqual(named | {"BatchCredit", "batch_credit"}, set(carnot.__all__))


if __name__ == "__main__":
    unittest.main()
