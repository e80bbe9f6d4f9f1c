"""An agent of the framework openai-agents, trained by Carnot: it may look up how long a word is, and must say it.

    pip install openai-agents
    carnot train examples/agent/word_count.yaml

Only the last line of this file knows Carnot: the framework finds the policy by OPENAI_BASE_URL, and the reward is
what the program prints last.
"""
import json
import sys

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(True)


@function_tool
def count_letters(word: str) -> int:
    """How many letters a word has."""
    return len(word)


task = json.load(sys.stdin)
word = (task["task"] or {"word": "moss"})["word"]
agent = Agent(name="counter", instructions="Say how many letters the word has, as a number.", tools=[count_letters],
              model=OpenAIChatCompletionsModel(model="policy", openai_client=AsyncOpenAI()),
              model_settings=ModelSettings(temperature=1))
try:
    said = Runner.run_sync(agent, word, max_turns=4).final_output
except Exception as error:  # the policy called a tool that does not exist, or did not finish
    if type(error).__module__.split(".")[0] != "agents":
        raise
    said = ""
print(json.dumps({"reward": float(str(said).strip() == str(len(word))), "measures": {"said": len(str(said))}}))
