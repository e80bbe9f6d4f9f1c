#!/usr/bin/env python3
"""examples/trainers/carnot_prime_rl.py on the traces of the real verifiers, which prime-rl trains on.

    PYTHONPATH=FOLDER_OF_CARNOT_RL_CORE .cache/test_packages/adapters/bin/python tests/wheels/prime_rl_test.py
"""
import json
import lzma
import pathlib
import sys
import unittest

import numpy as np
import verifiers.v1 as v1
from verifiers.v1.graph import MessageNode

import carnot_rl_core as carnot

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "trainers"))
from carnot_prime_rl import assign_credit  # noqa: E402


def recorded(file, rule):
    lines = lzma.open(ROOT / "tests" / "recorded" / "credit" / f"{file}.jsonl.xz", "rt").read().splitlines()
    return [case for case in map(json.loads, lines) if case["rule"] == rule]


def trace_of(turns, reward, ok=True, info=None, with_entropies=True, parents=None):
    """A trace with a node per message: the tokens of a turn, given as logprobs and entropies, after two of scaffold."""
    nodes = []
    for i, turn in enumerate(turns):
        if turn is None:
            nodes.append(MessageNode(message=v1.UserMessage(content="go on"), token_ids=[5] * 3, mask=[False] * 3))
        else:
            nodes.append(MessageNode(message=v1.AssistantMessage(content="answer"), sampled=True,
                                     token_ids=[7] * (2 + len(turn)), mask=[False] * 2 + [True] * len(turn),
                                     logprobs=[one[0] for one in turn],
                                     entropies=[one[1] for one in turn] if with_entropies else None))
        nodes[-1].parent = (i - 1 if i else None) if parents is None else parents[i]
    return v1.WireTrace(task={"type": "Task", "data": {"idx": 0, "prompt": "question"}}, agent={"config": {}},
                        nodes=nodes, rewards={"reward": v1.Reward(score=reward)}, ok=ok, info=info or {})


def random_turns(random):
    for i in range(random.integers(1, 5)):
        if i:
            yield None
        yield [(-random.exponential(), random.random()) for _ in range(random.integers(1, 5))]


def row_of(i, trace, entropies=True):
    mask, signal, turns = [], [], []
    for node in trace.nodes:
        values = iter((node.entropies if entropies else [-x for x in node.logprobs]) or [])
        signal += [next(values) if sampled else np.nan for sampled in node.mask]
        if node.sampled and turns:
            turns[-1]["end"] = len(mask)
        if node.sampled:
            turns.append({"start": len(mask) if turns else 0})
        mask += node.mask
    turns[-1]["end"] = len(mask)
    return {"uid": "task", "traj_id": i, "score": trace.reward, "token_ids": np.zeros(len(mask), int),
            "loss_mask": np.array(mask), "entropy_old": np.array(signal), "turns": turns}


class Traces(unittest.TestCase):
    def expect(self, trace, advantages):
        """One number for each sampled token, on its node."""
        self.assertTrue(all(node.advantages is None for node in trace.nodes if not node.sampled))
        found = [value for node in trace.nodes if node.sampled for value in node.advantages]
        mask = np.concatenate([node.mask for node in trace.nodes]).astype(bool)
        np.testing.assert_allclose(found, np.asarray(advantages, float)[mask], rtol=0, atol=1e-12)

    def group(self, **more):
        random = np.random.default_rng(11)
        return [trace_of(list(random_turns(random)), random.random(), **more) for _ in range(6)]

    def test_aem_reads_the_entropies_of_nodes(self):
        traces = self.group()
        assign_credit(traces, "grpo + aem")
        credit = carnot.credit([row_of(i, trace) for i, trace in enumerate(traces)], "grpo + aem")
        for trace, one in zip(traces, credit):
            self.expect(trace, one.advantage)
            spread, mask = trace.branches[0].advantages, np.array(trace.branches[0].sampled_mask)
            np.testing.assert_allclose(np.array(spread)[mask], one.advantage[mask], rtol=0, atol=1e-12)

    def test_aem_takes_surprisals_where_there_are_no_entropies(self):
        traces = self.group(with_entropies=False)
        assign_credit(traces, "grpo + aem")
        rows = [row_of(i, trace, entropies=False) for i, trace in enumerate(traces)]
        for trace, one in zip(traces, carnot.credit(rows, "grpo + aem")):
            self.expect(trace, one.advantage)

    def test_aepo_scales_advantages_over_the_group(self):
        traces = self.group()
        assign_credit(traces, "grpo + aepo")
        rows = [row_of(i, trace) for i, trace in enumerate(traces)]
        sampled = np.concatenate([row["entropy_old"][row["loss_mask"]] for row in rows])
        for trace, row, one in zip(traces, rows, carnot.credit(rows, "grpo")):
            self.expect(trace, one.advantage * (1 + 0.2 * (row["entropy_old"] - sampled.mean()) / sampled.std(ddof=1)))

    def test_actfocus_weighs_actions(self):
        traces = self.group()
        assign_credit(traces, "grpo + actfocus", {"actfocus.signal": "surprisal"},
                      action_tokens=lambda node: np.arange(len(node.logprobs)) > 0)
        rows = [row_of(i, trace, entropies=False) for i, trace in enumerate(traces)]
        for row, trace in zip(rows, traces):
            row["logp_old"] = -row["entropy_old"]
            kinds = [np.where(mask, np.where(np.cumsum(mask) > 1, "action", "think"), "observation")
                     for mask in (node.mask for node in trace.nodes)]
            row["segment"] = np.concatenate(kinds).tolist()
        credit = carnot.credit(rows, "grpo + actfocus", {"actfocus.signal": "surprisal"})
        mean = np.nanmean(np.concatenate([one.weight for one in credit]))
        for trace, one in zip(traces, credit):
            self.expect(trace, one.advantage * one.weight / mean)

    def test_a_trace_with_an_error_is_left_without_credit(self):
        traces = self.group()
        failed = trace_of([[(-1.0, 1.0)]], 5.0, ok=False)
        assign_credit([*traces, failed], "grpo")
        self.assertTrue(all(node.advantages is None for node in failed.nodes))
        credit = carnot.credit([row_of(i, trace) for i, trace in enumerate(traces)], "grpo")
        for trace, one in zip(traces, credit):
            self.expect(trace, one.advantage)

    def test_branches_that_share_a_node_agree(self):
        turn = [(-1.0, 0.5)] * 3
        forked = trace_of([turn, None, turn, None, turn], 1.0, parents=[None, 0, 1, 0, 3])
        self.assertEqual(len(forked.branches), 2)
        assign_credit([forked, trace_of([turn], 0.0)], "grpo")
        first, second = (branch.advantages for branch in forked.branches)
        self.assertEqual(first[:5], second[:5])
        self.assertEqual([value for value in first if value], [value for value in second if value])

    def test_recorded_credit_of_grpo_and_a2tgpo(self):
        options = {"grpo": lambda case: {"divide_by_std": case["norm_by_std"], "singleton": "raw"},
                   "a2tgpo": lambda case: {"preset": "code", "weight": case["alpha"], "discount": case["gamma"],
                                           "clip_swing": case["clip_beta"]}}
        for file, rule, method, count in (("adv_grpo", "grpo", "grpo", 55),
                                          ("adv_a2tgpo", "a2tgpo_turn-group-v1d", "a2tgpo", 27)):
            cases = [case for case in recorded(file, rule) if method == "grpo" or case["options"]["norm_by_std"]]
            self.assertEqual(len(cases), count)
            for case in cases:
                self.expect_recorded(case, method, options[method](case["options"]))

    def expect_recorded(self, case, method, options):
        groups = {}
        for row, right in zip(case["trajectories"], case["expected"]["advantage"]):
            numbers = [token["turn"] for token in row["tokens"] if token["sampled"]]
            turns = [[(0.0, 0.0)] * numbers.count(turn) for turn in sorted(set(numbers))]
            gains = [row["ig"][i] if i < len(row["ig"]) else None for i in range(len(turns))] if "ig" in row else []
            right = [value for value, token in zip(right, row["tokens"]) if token["sampled"]]
            trace = trace_of(turns, row["reward"], info={"info_gains": gains} if gains else None)
            groups.setdefault(row["group"], []).append((trace, right))
        for group in groups.values():
            gains = [gain for trace, _ in group for gain in trace.info.get("info_gains", [])]
            if gains and all(gain is None for gain in gains):
                continue  # the source goes without; Carnot reports that they are missing
            assign_credit([trace for trace, _ in group], method, options)
            for trace, right in group:
                found = [value for node in trace.nodes for value in node.advantages]
                np.testing.assert_allclose(found, right, rtol=0, atol=1e-9, err_msg=case["id"])


if __name__ == "__main__":
    unittest.main()
