#!/usr/bin/env python3
"""carnot_rl_core.verifiers with the real verifiers and a client that answers by script.

    PYTHONPATH=FOLDER_OF_CARNOT_RL_CORE .cache/test_packages/earlier_adapters/bin/python tests/wheels/verifiers_test.py
"""
import asyncio
import pathlib
import re
import unittest

import verifiers as vf
from verifiers.types import Response, ResponseMessage, ToolCall

from carnot_rl_core import World
from carnot_rl_core.verifiers import CarnotEnv

TASKS = pathlib.Path(__file__).resolve().parents[1] / "tasks"


class ScriptedClient(vf.Client):
    """Answers by `answer`, from the messages; keeps the prompts and tools that it was given."""

    def __init__(self, answer):
        super().__init__(None)
        self.answer, self.prompts, self.tools = answer, [], []

    async def get_native_response(self, prompt, model, sampling_args, tools=None, **kwargs):
        self.prompts.append(prompt)
        self.tools.append(tools)
        return self.answer(prompt)

    async def to_native_prompt(self, messages):
        return [message.model_dump(exclude_none=True) for message in messages], {}

    async def to_native_tool(self, tool):
        return tool

    async def from_native_response(self, response):
        text, calls = response if isinstance(response, tuple) else (response, None)
        message = ResponseMessage(content=text, tool_calls=calls, finish_reason="stop", is_truncated=False)
        return Response(id="one", created=0, model="script", message=message)

    async def raise_from_native_response(self, response):
        pass

    def setup_client(self, config):
        return None

    async def close(self):
        pass


def rollouts(environment, client, count):
    rows = environment.get_dataset().select(range(count))
    return asyncio.run(environment.generate(rows, client, "script", max_concurrent=1))["outputs"]


def halve(prompt):
    low, high = 1, 20
    for message in prompt:
        hint = re.match(r"(\d+) is too (low|high)", message["content"]) if message["role"] == "user" else None
        if hint:
            low, high = (int(hint[1]) + 1, high) if hint[2] == "low" else (low, int(hint[1]) - 1)
    return f"<answer>{(low + high) // 2}</answer>"


class Verifiers(unittest.TestCase):
    def test_a_rollout_gets_the_rewards_of_its_episode(self):
        world = World("skeleton", {"max_turns": 3})
        outputs = rollouts(CarnotEnv(world, num_tasks=12), ScriptedClient(halve), 12)
        found, expected = [], []
        for index, output in enumerate(outputs):
            episode = world.make("train", index)
            messages, replies = episode.open().messages, []
            while not (replies and replies[-1].done):
                replies.append(episode.step(halve(messages)))
                messages = messages + replies[-1].messages
            found.append((output["reward"], output["metrics"]["success"], output["metrics"]["num_turns"]))
            expected.append((sum(one.reward + one.penalty for one in replies), float(replies[-1].success),
                             len(replies)))
        self.assertEqual(found, expected)
        self.assertEqual({reward for reward, *_ in found}, {0, 1})

    def test_a_fresh_prompt_replaces_the_conversation(self):
        world = World("alfworld", {"task_source": str(TASKS / "alfworld"), "max_steps": 3})
        client = ScriptedClient(lambda prompt: "<think>.</think><action>look</action>")
        rollouts(CarnotEnv(world, num_tasks=1), client, 1)
        episode = world.make("train", 0)
        expected = [episode.open().messages]
        for _ in range(2):
            expected.append(episode.step("<think>.</think><action>look</action>").messages)
        self.assertEqual(client.prompts, expected)

    def test_tools_are_offered_and_called(self):
        world = World("word_problems", {"tool_calls": "chat"})
        truth = world.make("train", 0).ground_truth[0]
        call = ToolCall(id="one", name="calculator", arguments='{"expression": "6 * 7"}')

        def answer(prompt):
            return f"<answer>{truth}</answer>" if prompt[-1]["role"] == "tool" else ("", [call])

        client = ScriptedClient(answer)
        output, = rollouts(CarnotEnv(world, num_tasks=1), client, 1)
        self.assertEqual([tool.name for tool in client.tools[0]], ["calculator"])
        self.assertEqual(client.prompts[1][-1], {"role": "tool", "content": "42", "tool_call_id": "one"})
        self.assertEqual((output["reward"], output["answer"]), (1.0, truth))

    def test_validation_tasks_are_for_evaluation(self):
        environment = CarnotEnv(World("gsm8k", {"task_source": str(TASKS)}))
        for split, rows in (("train", environment.get_dataset()), ("test", environment.get_eval_dataset())):
            self.assertEqual(len(rows), len((TASKS / f"{split}.jsonl").read_text().splitlines()))


if __name__ == "__main__":
    unittest.main()
