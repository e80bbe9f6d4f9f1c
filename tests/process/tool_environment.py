"""An environment with its own tool. The reward counts the calls that it receives."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
from carnot_environment import Environment, Prompt, Reply, Tool, serve


class Room(Environment):
    max_turns = 10

    def __init__(self, tool="look"):
        self.tool, self.heard = tool, 0

    def reset(self, task):
        return Prompt("Look around.", tools=[Tool(self.tool, "Looks.")])

    def step(self, response):
        if not response.tool_calls:
            return Reply(reward=self.heard, done=True)
        results = []
        for call in response.tool_calls:
            self.heard += 1
            results.append("you see %d" % self.heard if call.name == self.tool else "no such thing as " + call.name)
        return Reply(results=results)


serve(Room)
