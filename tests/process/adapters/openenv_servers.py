"""Servers of OpenEnv: python3 openenv_servers.py echo|form|sums PORT"""
import sys

import uvicorn
from fastmcp import FastMCP
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field


class EchoAction(Action):
    message: str = Field(description="Message to echo back")


class FormAction(Action):
    row: int = Field(ge=0, le=2)
    text: str


class Said(Observation):
    said: str


class Talk(Environment):
    """Says the seed, then echoes what it gets. Over at "bye"."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed=None, level="easy"):
        return Said(said="seed %d, %s" % (seed, level))

    def step(self, action):
        text = getattr(action, "message", None) or "%d %s" % (action.row, action.text)
        return Said(said=text, reward=0.1 * len(text), done=text == "bye")

    @property
    def state(self):
        return State()


class Sums(MCPEnvironment):
    """Asks for a sum. Over when an answer is handed in."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        tools = FastMCP("sums")

        @tools.tool
        def add(a: int, b: int) -> int:
            "Adds two numbers."
            return a + b

        @tools.tool
        def submit(answer: int) -> str:
            "Hands in the answer."
            self.is_correct = answer == self.number + 7
            return "Correct." if self.is_correct else "Wrong."

        super().__init__(tools)

    def reset(self, seed=None, episode_id=None):
        self.number, self.is_correct = seed % 100, None
        return Said(said="What is %d + 7?" % self.number)

    async def step_async(self, action, timeout_s=None, **rest):
        observation = await super().step_async(action, timeout_s=timeout_s, **rest)
        if self.is_correct is not None:
            observation.done, observation.reward = True, float(self.is_correct)
        return observation

    def _step_impl(self, action, timeout_s=None, **rest):
        raise ValueError("only tools")

    @property
    def state(self):
        return State()


APPS = {"echo": (Talk, EchoAction, Said), "form": (Talk, FormAction, Said),
        "sums": (Sums, CallToolAction, CallToolObservation)}

if __name__ == "__main__":
    app = create_app(*APPS[sys.argv[1]], max_concurrent_envs=2)
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
