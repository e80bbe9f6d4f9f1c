"""An environment that does no work, for process_bench. With an argument, it takes steps in batches."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
from carnot_environment import Environment, serve


class Trivial(Environment):
    max_turns = 1000
    batch = len(sys.argv) > 1

    def reset(self, task):
        return "start"

    def step(self, response):
        return "next"


serve(Trivial)
