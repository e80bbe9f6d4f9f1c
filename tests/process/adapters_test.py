"""The adapters in python/, each with the package it is for, driven as Carnot drives it.

    tools/install_test_packages.sh
    .cache/test_packages/adapters/bin/python tests/process/adapters_test.py
    .cache/test_packages/earlier_adapters/bin/python tests/process/adapters_test.py VerifiersEnvironments
"""
import os
import socket
import subprocess
import sys
import time
import unittest
import urllib.request

from spoken_to import PYTHON, WORLDS, Process


class Gymnasium(unittest.TestCase):
    script = os.path.join(PYTHON, "gymnasium_adapter.py")
    lake = {"id": "FrozenLake-v1", "is_slippery": False, "actions": "left, down, right, up"}

    def test_frozen_lake_is_won(self):
        with Process(self.script, **self.lake) as process:
            self.assertTrue(process.greeting["replay"])
            self.assertEqual(process.greeting["max_turns"], 100)
            self.assertIn("[S]FFF\nFHFH\nFFFH\nHFFG\n\nActions: left, down, right, up.", process.reset()["user"])
            for action in ("down", "down", "right", "right"):
                self.assertNotIn("done", process.step("I go <answer>%s</answer>" % action))
            lost = process.step("<answer>jump</answer>")
            self.assertEqual((lost["valid_action"], lost["penalty"]), (False, -0.1))
            process.step("<answer>down</answer>")
            won = process.step("<answer>right</answer>")
            self.assertEqual(won["measures"], {"return": 1, "steps": 6})
            self.assertEqual((won["reward"], won["done"], won["success"]), (1, True, True))

    def test_a_hole_is_not_a_success(self):
        with Process(self.script, **self.lake) as process:
            process.reset()
            process.step("<answer>right</answer>")
            fallen = process.step("<answer>down</answer>")
            self.assertTrue(fallen["done"])
            self.assertNotIn("success", fallen)

    def test_a_task_is_its_seed_and_the_splits_are_disjoint(self):
        with Process(self.script, id="gymnasium_games:Dials-v0") as process:
            first = process.reset(1, "train", seed=8)["user"]
            self.assertEqual(process.reset(2, "train", seed=8)["user"], first)
            self.assertNotEqual(process.reset(3, "validation", seed=8)["user"], first)
            for split, parity in (("train", 0), ("validation", 1)):
                for seed in range(20):
                    text = process.reset(10 + seed, split, seed=seed * 2**40)["user"]
                    self.assertIn(", %d.0]" % parity, text)

    def test_slippery_ice_is_replayed_identically(self):
        shown = []
        for _ in range(2):
            with Process(self.script, id="FrozenLake-v1", actions=["left", "down", "right", "up"]) as process:
                process.reset(seed=11)
                shown.append([process.step("<answer>right</answer>")["text"] for _ in range(3)])
        self.assertEqual(shown[0], shown[1])

    def test_several_numbers_and_texts_are_actions_too(self):
        with Process(self.script, id="gymnasium_games:Dials-v0") as process:
            self.assertIn("(0 to 2, 0 to 9), like this: <answer>0 0</answer>", process.reset()["user"])
            for wrong in ("2", "3 0", "two, nine", "1 2 3"):
                self.assertFalse(process.step("<answer>%s</answer>" % wrong)["valid_action"])
            self.assertEqual(process.step("<answer>2, 9</answer>")["text"], "[2.0, 9.0]")
        with Process(self.script, id="gymnasium_games:Echo-v0", max_turns=7) as process:
            self.assertEqual(process.greeting["max_turns"], 7)
            self.assertIn("silence", process.reset()["user"])
            self.assertFalse(process.step("<answer>longer</answer>")["valid_action"])
            self.assertEqual(process.step("<answer>good</answer>")["text"], "good")
            self.assertTrue(process.step("<answer>hello</answer>")["success"])

    def test_a_wrapper_makes_actions_discrete(self):
        with Process(self.script, id="Pendulum-v1") as process:
            self.assertIn("a wrapper can make them discrete", process.greeting["error"])
        with Process(self.script, id="Pendulum-v1", wrapper="gymnasium_games:Steered", actions="left,right") as process:
            process.reset()
            self.assertLess(process.step("<answer>left</answer>")["reward"], 0)

    def test_a_time_limit_is_not_an_end_of_the_game(self):
        with Process(self.script, id="FrozenLake-v1", actions="left,down,right,up", is_slippery=False,
                     max_episode_steps=2) as process:
            process.reset()
            process.step("<answer>left</answer>")
            self.assertEqual(process.step("<answer>left</answer>")["outcome"], "out_of_turns")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class OpenEnv(unittest.TestCase):
    script = os.path.join(PYTHON, "openenv_adapter.py")

    servers = {}

    @classmethod
    def serve(cls, world):
        """The address of the world's server, which runs until the last test of the class."""
        if world in cls.servers:
            return cls.servers[world]
        port = free_port()
        command = [sys.executable, os.path.join(WORLDS, "openenv_servers.py"), world, str(port)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(server.wait)
        cls.addClassCleanup(server.kill)
        cls.servers[world] = "http://127.0.0.1:%d" % port
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while server.poll() is None:
            try:
                direct.open(cls.servers[world] + "/health").close()
                return cls.servers[world]
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("the server of OpenEnv ended")

    def test_an_action_of_one_field_is_the_answer(self):
        with Process(self.script, url=self.serve("echo"), show="said", level="hard", max_turns=5) as process:
            self.assertEqual(process.greeting["max_turns"], 5)
            self.assertEqual(process.reset()["user"], "seed 10, hard\n\nmessage: Message to echo back. "
                                                      "Answer like this: <answer>message</answer>")
            self.assertEqual(process.reset(2, "validation")["user"][:14], "seed 11, hard\n")
            heard = process.step("<answer>hello</answer>")
            self.assertEqual((heard["text"], heard["reward"]), ("hello", 0.5))
            self.assertFalse(process.step("no tag")["valid_action"])
            over = process.step("<answer>bye</answer>")
            self.assertTrue(over["done"] and over["success"])
            self.assertAlmostEqual(over["measures"]["return"], 0.8)

    def test_too_many_sessions_are_not_a_reward(self):
        with Process(self.script, url=self.serve("echo")) as process:
            process.reset(1)
            process.reset(2)
            self.assertIn("error", process.reset(3))
            process.step("<answer>bye</answer>", 1)
            time.sleep(1)
            self.assertIn("user", process.reset(4))

    def test_an_action_of_several_fields_is_a_json_object(self):
        with Process(self.script, url=self.serve("form")) as process:
            self.assertIn('"required": ["row", "text"]', process.reset()["user"])
            for wrong in ("hello", "[1]", '{"row": 1}', '{"row": 1, "text": "a", "column": 2}',
                          '{"row": 7, "text": "a"}', '{"row": "a", "text": "a"}'):
                self.assertFalse(process.step("<answer>%s</answer>" % wrong)["valid_action"], wrong)
            self.assertEqual(process.step('<answer>{"row": 1, "text": "a"}</answer>')["text"], "1 a")

    def test_mcp_tools_are_offered_and_called(self):
        with Process(self.script, url=self.serve("sums")) as process:
            opening = process.reset()
            self.assertEqual(opening["user"], "What is 10 + 7?")
            self.assertEqual([tool["name"] for tool in opening["tools"]], ["add", "submit"])
            reply = process.step("", calls=[("add", {"a": 10, "b": 7}), ("divide", {}), ("add", {"a": "x"})])
            texts = [result["text"] for result in reply["results"]]
            self.assertEqual(texts[0], "17")
            self.assertIn("Error: Unknown tool", texts[1])
            self.assertIn("Error: ", texts[2])
            reply = process.step("", calls=[("submit", {"answer": 17}), ("add", {"a": 1, "b": 1})])
            self.assertEqual([result["text"] for result in reply["results"]], ["Correct.", "The episode is over."])
            self.assertEqual((reply["reward"], reply["done"], reply["success"]), (1, True, True))

    def test_a_response_without_a_call_ends_an_episode_of_tools(self):
        with Process(self.script, url=self.serve("sums")) as process:
            process.reset()
            reply = process.step("It is 17.")
            self.assertEqual((reply["reward"], reply["done"]), (0, True))

    def test_a_missing_server_is_an_error_before_the_run(self):
        with Process(self.script, url="http://127.0.0.1:%d" % free_port()) as process:
            self.assertIn("URLError", process.greeting["error"])


class VerifiersEpisodes:
    """The same for both forms of verifiers."""

    script = os.path.join(PYTHON, "verifiers_adapter.py")

    def test_tools_are_offered_and_called(self):
        with Process(self.script, id=self.sums, max_turns=3) as process:
            opening = process.reset(task=2)
            self.assertEqual((opening["user"], opening["ground_truth"]), ("What is 2 + 4?", ["6"]))
            self.assertEqual([tool["name"] for tool in opening["tools"]], ["add"])
            reply = process.step("Let me see.", calls=[("add", {"a": 2, "b": 4}), ("add", {"a": "x"})])
            self.assertEqual(reply["results"][0]["text"], "6")
            self.assertEqual(len(reply["results"]), 2)
            reply = process.step("It is 6.")
            self.assertEqual((reply["reward"], reply["done"], reply["success"]), (1, True, True))

    def test_an_environment_that_answers_is_played(self):
        with Process(self.script, id=self.guess, max_turns=3) as process:
            process.reset(1, task=4)
            process.reset(2, task=4)
            self.assertEqual(process.step("3", 1)["text"], "Too low.")
            self.assertEqual(process.step("9", 2)["text"], "Too high.")
            won = process.step("5", 1)
            self.assertEqual((won["reward"], won["success"]), (1, True))
            process.step("9", 2)
            lost = process.step("9", 2)
            self.assertEqual((lost["reward"], lost["done"]), (0, True))

    def test_what_the_environment_raises_is_not_a_reward(self):
        with Process(self.script, id=self.guess) as process:
            process.reset()
            self.assertIn("error", process.step("not a number"))

    def test_an_episode_may_be_abandoned(self):
        with Process(self.script, id=self.guess) as process:
            process.reset(1)
            process.close(1)
            self.assertIn("user", process.reset(2))


class VerifiersTasksets(VerifiersEpisodes, unittest.TestCase):
    sums, guess = "sums_taskset", "guess_taskset"

    def test_rows_are_tasks_and_the_last_tenth_is_for_validation(self):
        with Process(self.script, id=self.sums, rows=20) as process:
            opening = process.reset(1, "train", 18)
            self.assertEqual((opening["system"], opening["user"]), ("Be brief.", "What is 0 + 4?"))
            self.assertEqual(process.reset(2, "validation", 0)["user"], "What is 18 + 4?")
            wrong = process.step("", 1)
            self.assertEqual((wrong["reward"], wrong["done"]), (0, True))
            self.assertEqual(process.step("22", 2)["measures"], {"length": 2})


class VerifiersEnvironments(VerifiersEpisodes, unittest.TestCase):
    sums, guess = "loaded_environments:sums", "loaded_environments:guess"

    def test_a_single_turn_is_scored(self):
        with Process(self.script, id="loaded_environments:capitals") as process:
            opening = process.reset(1, "validation")
            self.assertEqual((opening["system"], opening["user"]), ("Be brief.", "What is the capital of Peru?"))
            process.reset(2, "train", 3)
            self.assertEqual(process.step("It is Lima.", 1)["measures"], {"correct": 1, "num_turns": 1})
            wrong = process.step("", 2)
            self.assertEqual((wrong["reward"], wrong["done"]), (0, True))

    def test_rewards_that_compare_a_group_are_refused(self):
        with Process(self.script, id="loaded_environments:ranked") as process:
            self.assertIn("compare a group", process.greeting["error"])

    def test_rows_for_evaluation_are_for_validation(self):
        with Process(self.script, id=self.guess) as process:
            process.reset(1, "validation", 6)
            self.assertEqual(process.step("2")["reward"], 1)
            self.assertEqual(process.greeting["max_turns"], 4)


if __name__ == "__main__":
    unittest.main(defaultTest=["Gymnasium", "OpenEnv", "VerifiersTasksets"])
