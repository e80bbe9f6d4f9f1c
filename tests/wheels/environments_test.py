#!/usr/bin/env python3
"""The environments of the installed package carnot_rl_core: episodes equal those that the program plays.

    venv/bin/python tests/wheels/environments_test.py build/carnot
"""
import concurrent.futures
import json
import pathlib
import random
import re
import subprocess
import sys
import unittest

import carnot_rl_core as carnot

TASKS = pathlib.Path(__file__).resolve().parents[1] / "tasks"
PROGRAM = sys.argv.pop(1)
OPTIONS = {
    "alfworld": {"task_source": str(TASKS / "alfworld")},
    "dataset": {"train_file": str(TASKS / "train.jsonl"), "tools": ["calculator"], "scorers": ["exact_match"],
                "answer_in": "tag"},
    "gsm8k": {"task_source": str(TASKS)},
    "open_qa": {"task_source": str(TASKS / "open_qa")},
    "search_qa": {"train_worlds": 2, "held_out_worlds": 1},
    "webshop": {"task_source": str(TASKS / "webshop")},
    "word_problems": {"tool_calls": "chat"},
}
ANSWERS = ("Up", "Down || Left", "Right", "7", "12", "1,2,3", "place 2 at row 1 col 1", "search[shirt]",
           "click[Buy Now]", "#### 4", "\\boxed{ Keloria }", "√", "")
CALL = '{"name": "calculator", "arguments": {"expression": "6 * 7"}}'


def response(draw, observation, tools):
    """What a confused policy could write; actions that an observation lists are taken from it."""
    if tools and draw.random() < 0.4:
        return CALL
    listed = re.findall(r"'([^'\n]+)'", observation)
    answer = draw.choice(listed if listed and draw.random() < 0.8 else ANSWERS)
    tag = draw.choice(("answer", "answer", "action", "search"))
    return f"<think>\\ hm\n</think><{tag}>{answer}</{tag}>"


def call_of(text, tools):
    return [json.loads(text)] if tools and text.startswith("{") else []


def shown(reply):
    return {"text": reply.observation, "reward": reply.reward, "penalty": reply.penalty,
            "valid_action": reply.valid_action, "done": reply.done, "outcome": reply.outcome,
            "success": reply.success}


def play(episode, draw, most=12):
    """The opening, responses, and what was answered."""
    opening = episode.open()
    observation, responses, replies = opening.user, [], []
    while len(replies) < most and not (replies and replies[-1]["done"]):
        responses.append(response(draw, observation, opening.tools))
        reply = episode.step(responses[-1], call_of(responses[-1], opening.tools))
        observation = reply.observation
        replies.append(shown(reply))
    return opening, responses, replies


def settings_of(name):
    return [f"{key}={value if isinstance(value, str) else json.dumps(value)}"
            for key, value in OPTIONS.get(name, {}).items()]


def of_program(name, seed, run_seed, responses):
    lines = "".join(text.replace("\\", "\\\\").replace("\n", "\\n") + "\n" if not text.startswith("{") else text + "\n"
                    for text in responses)
    command = [PROGRAM, "env", name, "--seed", str(seed), "--run-seed", str(run_seed), "--prompt", "--json"]
    done = subprocess.run(command + settings_of(name), input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Environments(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.worlds = {name: carnot.World(name, OPTIONS.get(name, {}), 3) for name in carnot.environments()}

    def test_the_package_has_those_that_start_no_programs(self):
        self.assertEqual(set(self.worlds), {"alfworld", "dataset", "frozen_lake", "gsm8k", "open_qa", "search_qa",
                                            "skeleton", "sokoban", "sudoku", "webshop", "word_problems"})
        self.assertIn("ice", carnot.environments()["frozen_lake"])

    def test_episodes_equal_those_of_the_program(self):
        for name, world in self.worlds.items():
            for seed in range(3):
                opening, responses, replies = play(world.instance(seed), random.Random(seed))
                first, *rest = of_program(name, seed, 3, responses)
                self.assertEqual((opening.system, opening.user, opening.assistant_prefix),
                                 (first["system"], first["user"], first["assistant_prefix"]), name)
                self.assertEqual([{key: line[key] for key in replies[0]} for line in rest], replies, name)

    def test_the_same_index_is_the_same_task(self):
        for name, world in self.worlds.items():
            for split in ("train", "validation"):
                first, again = (play(world.make(split, 1), random.Random(5)) for _ in range(2))
                self.assertEqual(first[0].messages, again[0].messages)
                self.assertEqual(first[1:], again[1:], name)
        alone = carnot.make_environment("sokoban", {}, 3, "validation", 1)
        self.assertEqual(alone.open().messages, self.worlds["sokoban"].make("validation", 1).open().messages)

    def test_a_clone_goes_on_like_the_original_and_leaves_it_as_it_is(self):
        cloned = set()
        for name, world in self.worlds.items():
            whole, responses, replies = play(world.make("train", 2), random.Random(8))
            if not world.make().can_clone or len(replies) < 2:
                continue
            cloned.add(name)
            episode, tools = world.make("train", 2), whole.tools
            episode.open()
            episode.step(responses[0], call_of(responses[0], tools))
            copy = episode.clone()
            for branch in (copy, copy.clone(), episode):
                rest = [shown(branch.step(text, call_of(text, tools))) for text in responses[1:]]
                self.assertEqual(rest, replies[1:], name)
        self.assertGreaterEqual(cloned, {"alfworld", "frozen_lake", "skeleton", "sokoban", "sudoku"})

    def test_threads_play_at_once(self):
        world = self.worlds["sokoban"]

        def replies(index):
            return play(world.make("train", index), random.Random(index))[2]

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            self.assertEqual(list(pool.map(replies, range(40))), list(map(replies, range(40))))

    def test_replies_carry_the_messages_to_append(self):
        episode = self.worlds["skeleton"].make()
        opening = episode.open()
        self.assertEqual([message["role"] for message in opening.messages], ["system", "user"])
        reply = episode.step("<answer>0</answer>")
        self.assertEqual(reply.messages, [{"role": "user", "content": reply.observation}])
        self.assertEqual((reply.form, reply.valid_action, reply.outcome), ("user_message", False, None))
        self.assertLess(reply.penalty, 0)

        episode = self.worlds["alfworld"].make()
        episode.open()
        reply = episode.step("<think>.</think><action>look</action>")
        self.assertEqual(reply.form, "fresh_prompt")
        self.assertEqual(reply.messages, [{"role": "user", "content": reply.observation}])

        episode = self.worlds["word_problems"].make()
        self.assertEqual([tool["function"]["name"] for tool in episode.open().tools], ["calculator"])
        reply = episode.step("", [{"name": "calculator", "arguments": {"expression": "6 * 7"}, "id": "one"}])
        self.assertEqual(reply.messages, [{"role": "tool", "content": "42", "tool_call_id": "one"}])
        self.assertEqual((reply.tool, reply.status), ("calculator", "ok"))
        reply = episode.step(f"The answer is \\boxed{{ {episode.ground_truth[0]} }} .")
        self.assertEqual((reply.done, reply.messages), (True, []))

    def test_counts_of_tasks_are_those_of_the_files(self):
        self.assertIsNone(self.worlds["sokoban"].num_tasks())
        rows = len((TASKS / "train.jsonl").read_text().splitlines())
        self.assertEqual(self.worlds["gsm8k"].num_tasks("train"), rows)

    def test_errors_are_those_of_the_program(self):
        for name, options in (("frozen_lak", {}), ("process", {}), ("frozen_lake", {"siz": 3, "max_turns": -1}),
                              ("gsm8k", {"task_source": "/nowhere"})):
            settings = [f"{key}={value}" for key, value in options.items()]
            with self.assertRaises(ValueError) as raised:
                carnot.World(name, options)
            done = subprocess.run([PROGRAM, "env", name] + settings, input="", capture_output=True, text=True)
            for line in str(raised.exception).splitlines() if name in self.worlds else []:
                self.assertIn(line.replace("options: ", "command line: "), done.stderr)
        for call in (lambda: self.worlds["sokoban"].make("test"), lambda: self.worlds["sokoban"].make("train", -1),
                     lambda: self.worlds["sokoban"].make().step("too early"),
                     lambda: self.worlds["word_problems"].make().step("", [{"arguments": {}}])):
            self.assertRaises(ValueError, call)


if __name__ == "__main__":
    unittest.main()
