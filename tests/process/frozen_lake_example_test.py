"""examples/environment/frozen_lake.py follows its rules: played through its own protocol."""
import json
import os
import subprocess
import sys
import unittest

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "environment", "frozen_lake.py")
MAX_TURNS = 8


class Lake:
    """The program, with these settings."""

    def __init__(self, **settings):
        self.process = subprocess.Popen([sys.executable, SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.number = 0
        self.hello = self.ask(op="hello", protocol=1, settings=settings)

    def ask(self, **request):
        self.number += 1
        self.process.stdin.write(json.dumps({**request, "id": self.number}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert "error" not in answer, answer
        return answer

    def reset(self, episode, seed):
        return self.ask(op="reset", episode=episode, split="train", task=0, seed=seed)["user"]

    def demonstrate(self, episode, observation):
        return self.ask(op="demonstrate", episode=episode, observation=observation, progress=1)["text"]

    def step(self, episode, text):
        return self.ask(op="step", episode=episode, text=text)

    def play(self, episode, seed):
        """The demonstration of a task: what was said, and the last reply."""
        observation, said, reply = self.reset(episode, seed), [], {}
        while len(said) < MAX_TURNS and not reply.get("done"):
            said.append((observation, self.demonstrate(episode, observation)))
            reply = self.step(episode, said[-1][1])
            observation = reply.get("text", "")
        return said, reply

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class FrozenLakeExample(unittest.TestCase):
    def lake(self, **settings):
        lake = Lake(**settings)
        self.addCleanup(lake.close)
        return lake

    def test_careful_play_on_firm_ice_always_reaches_the_goal(self):
        lake = self.lake(success_rate=1, careless=0)
        for seed in range(100):
            _, last = lake.play(seed + 1, seed)
            self.assertTrue(last.get("done") and last.get("success") and last["reward"] == 1, seed)

    def test_a_move_announced_to_lead_into_a_hole_does(self):
        lake, falls = self.lake(success_rate=1), 0
        for seed in range(100):
            near = lake.reset(seed + 1, seed).split(" holes")[1].split()
            if not near:
                continue
            last = lake.step(seed + 1, f"<think>holes</think><answer>{near[0]}</answer>")
            self.assertTrue(last["done"] and not last.get("success"), seed)
            falls += 1
        self.assertGreater(falls, 20)

    def test_thoughts_describe_the_observation_but_not_the_decision(self):
        for careless in (0, 1):
            lake = self.lake(careless=careless)
            for seed in range(20):
                for observation, said in lake.play(seed + 1, seed)[0]:
                    self.assertTrue(said.startswith("<think>" + observation[observation.index("holes"):] + "</think>"), said)

    def test_idle_words_and_a_plan_follow_what_is_noted_and_leave_the_way_of_careful_play(self):
        plain, idle = self.lake(success_rate=1, careless=0), self.lake(success_rate=1, careless=0, idle_words=12, plan=True)
        self.assertGreaterEqual(idle.hello["max_response_tokens"] - plain.hello["max_response_tokens"], 15)
        for seed in range(20):
            observation = idle.reset(1, seed)
            words = idle.demonstrate(1, observation).split("<")[1].split(">")[1].split()
            noted = observation[observation.index("holes"):].split()
            self.assertEqual(words[:len(noted)], noted)
            self.assertEqual(len(words), len(noted) + 15 + 2)
            self.assertEqual(words[-2], "plan")
            self.assertTrue(idle.demonstrate(1, observation).endswith("</answer>"))
            self.assertTrue(idle.play(2, seed)[1].get("success"))

    def test_careless_demonstrations_and_slippery_ice_fail_more_often(self):
        def successes(**settings):
            lake = self.lake(**settings)
            return sum(bool(lake.play(seed + 1, seed)[1].get("success")) for seed in range(100))

        careful, slipping, careless = successes(success_rate=1, careless=0), successes(careless=0), successes(careless=0.5)
        self.assertTrue(careless < slipping < careful, (careless, slipping, careful))

    def test_the_same_task_and_responses_get_the_same_replies(self):
        lake = self.lake()
        self.assertTrue(lake.hello["replay"])
        for seed in range(20):
            observations = [lake.reset(episode, seed) for episode in (1, 2)]
            self.assertEqual(*observations)
            for _ in range(4):
                replies = [lake.step(episode, "<think>holes</think><answer>Left</answer>") for episode in (1, 2)]
                for reply in replies:
                    del reply["id"]
                self.assertEqual(*replies)
                if replies[0].get("done"):
                    break

    def test_a_malformed_response_moves_nothing_and_costs_a_penalty(self):
        lake = self.lake()
        before = lake.reset(1, 3)
        reply = lake.step(1, "<answer>Left</answer>")
        self.assertEqual((reply["text"], reply["penalty"], reply["valid_action"]), ("form", -0.1, False))
        lake.reset(2, 3)
        self.assertNotIn("penalty", lake.step(2, "<think>holes</think><answer>Left</answer>"))
        self.assertEqual(lake.reset(3, 3), before)


if __name__ == "__main__":
    unittest.main()
