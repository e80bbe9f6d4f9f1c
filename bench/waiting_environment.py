"""An environment whose every step waits for SECONDS (5), for bench/waiting.yaml: waiting_environment.py [SECONDS]."""
import asyncio
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
from carnot_environment import Environment, Reply, serve

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0


class Waiting(Environment):
    max_turns = 3
    max_response_tokens = 8
    tokenizer_words = ("go", "next")

    async def reset(self, task):
        self.turn = 0
        return "go"

    async def step(self, response):
        await asyncio.sleep(SECONDS)
        self.turn += 1
        return Reply("next", done=self.turn == self.max_turns, reward=len(response) % 2)


serve(Waiting)
