"""Answers with a hash of everything it got, so that any mix-up of episodes shows."""
import asyncio
import os
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
from carnot_environment import Environment, Prompt, Reply, serve


class Counting(Environment):
    max_turns = 4
    max_response_tokens = 12
    stop = ("z",)
    replay = True

    def __init__(self, batch=False, clone=False):
        self.batch, self.clone = batch, clone

    def reset(self, task):
        self.heard, self.turn = task.seed, 0
        return Prompt("task %d" % task.index, system="be brief", assistant_prefix="<think>", info={"index": task.index})

    def step(self, response):
        self.heard = zlib.crc32(("%d %s" % (self.heard, response)).encode())
        self.turn += 1
        reward = self.heard % 5
        if self.turn == 3:
            return Reply(reward=reward, done=True, success=reward > 2, measures={"turns": self.turn})
        return Reply("heard %d" % (self.heard % 1000), reward=reward, inline=self.heard % 2 == 0)

    def step_batch(self, environments, responses):
        # The order of work differs from the order of the list.
        replies = {}
        for i in reversed(range(len(environments))):
            replies[i] = environments[i].step(responses[i])
        return [replies[i] for i in range(len(environments))]

    def anchor(self):
        return str(self.heard)


class Meeting(Counting):
    """The same in coroutines; the first response of each episode waits for those of `at_once` episodes."""

    waiting = []

    def __init__(self, at_once):
        super().__init__()
        self.at_once = at_once

    async def step(self, response):
        if self.turn == 0:
            here = asyncio.get_running_loop().create_future()
            self.waiting.append(here)
            if len(self.waiting) == self.at_once:
                for one in self.waiting:
                    one.set_result(None)
            await here
        return super().step(response)


serve(lambda at_once=0, **settings: Meeting(at_once) if at_once else Counting(**settings))
