"""A step waits for the step of another episode: it is answered only if episodes run concurrently."""
import asyncio
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "python"))
from carnot_environment import Environment, Reply, serve


class Meeting(Environment):
    waiting = []

    async def reset(self, task):
        await asyncio.sleep(0)
        return "Wait for the other one."

    async def step(self, response):
        if response == "fail":
            raise ValueError("as asked")
        if not self.waiting:
            self.waiting.append((response, asyncio.get_running_loop().create_future()))
            return Reply(await self.waiting[0][1], done=True)
        said, answer = self.waiting.pop()
        answer.set_result(str(response))
        return Reply(said, done=True)


serve(Meeting)
