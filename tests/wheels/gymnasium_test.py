#!/usr/bin/env python3
"""carnot_rl_core.gymnasium with the real gymnasium.

    PYTHONPATH=FOLDER_OF_CARNOT_RL_CORE .cache/test_packages/adapters/bin/python tests/wheels/gymnasium_test.py
"""
import unittest
import warnings

from gymnasium.utils.env_checker import check_env

from carnot_rl_core import World
from carnot_rl_core.gymnasium import TextEnv


class Gymnasium(unittest.TestCase):
    def test_its_own_checker_accepts_every_kind_of_conversation(self):
        for name, options in (("skeleton", {}), ("frozen_lake", {}), ("word_problems", {"tool_calls": "chat"}),
                              ("search_qa", {"train_worlds": 1, "held_out_worlds": 1})):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                check_env(TextEnv(World(name, options)), skip_render_check=True)

    def test_steps_are_those_of_the_episode(self):
        world = World("frozen_lake", {}, 7)
        environment, episode = TextEnv(world, "validation"), world.make("validation", 4)
        observation, info = environment.reset(options={"index": 4})
        self.assertEqual(info["messages"], episode.open().messages)
        self.assertIn(info["messages"][-1]["content"], observation)
        done = False
        for action in ("Down", "nonsense", "Right", "Right", "Up", "Down") * 8:
            if done:
                break
            text = f"<think>.</think><answer>{action}</answer>"
            reply = episode.step(text)
            observation, reward, terminated, truncated, info = environment.step(text)
            self.assertEqual((observation, reward), (reply.observation, reply.reward + reply.penalty))
            self.assertEqual((info["success"], info["valid_action"]), (reply.success, reply.valid_action))
            done = reply.done
            self.assertEqual(terminated or truncated, done)
            self.assertEqual(truncated, done and reply.outcome == "out_of_turns")
        self.assertTrue(done)

    def test_a_spent_budget_truncates_and_a_right_guess_terminates(self):
        environment = TextEnv(World("skeleton", {"largest": 4, "max_turns": 2}))
        ends = set()
        for index in range(20):
            environment.reset(options={"index": index})
            for guess in (1, 2):
                _, reward, terminated, truncated, info = environment.step(f"<answer>{guess}</answer>")
                if terminated or truncated:
                    ends.add((reward, terminated, truncated, info["success"]))
                    break
        self.assertEqual(ends, {(1.0, True, False, True), (0.0, False, True, False)})

    def test_a_tool_is_called_by_its_json(self):
        environment = TextEnv(World("word_problems", {"tool_calls": "chat"}))
        _, info = environment.reset(seed=1)
        self.assertEqual(info["tools"][0]["function"]["name"], "calculator")
        observation, *_ = environment.step('{"name": "calculator", "arguments": {"expression": "6 * 7"}}')
        self.assertEqual(observation, "42")


if __name__ == "__main__":
    unittest.main()
