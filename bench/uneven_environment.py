"""Episodes of very different length, for bench/uneven.yaml: one task in eight has 24 turns, the others have 3, and the
world answers a turn after SECONDS (0.05): uneven_environment.py [SECONDS]."""
import asyncio
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
from carnot_environment import Environment, Reply, serve

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 0.05


class Uneven(Environment):
    max_turns = 24
    max_response_tokens = 8
    tokenizer_words = ("go", "next")

    async def reset(self, task):
        self.turn, self.turns = 0, 24 if random.Random(task.seed).random() < 1 / 8 else 3
        return "go"

    async def step(self, response):
        await asyncio.sleep(SECONDS)
        self.turn += 1
        return Reply("next", done=self.turn == self.turns, reward=len(response) % 2)


serve(Uneven)
