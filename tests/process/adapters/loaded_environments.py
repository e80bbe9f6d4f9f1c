"""Environments in the form of verifiers up to 0.3."""
import verifiers as vf
from datasets import Dataset


def capitals():
    rows = [{"question": "What is the capital of %s?" % country, "answer": capital}
            for country, capital in [("France", "Paris"), ("Japan", "Tokyo"), ("Peru", "Lima")]]

    async def correct(completion, answer) -> float:
        return float(answer in completion[-1]["content"])

    return vf.SingleTurnEnv(dataset=Dataset.from_list(rows), system_prompt="Be brief.", rubric=vf.Rubric([correct]))


def sums():
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    async def correct(completion, answer) -> float:
        return float(answer in completion[-1]["content"])

    rows = [{"question": "What is %d + 4?" % i, "answer": str(i + 4)} for i in range(20)]
    return vf.ToolEnv(tools=[add], dataset=Dataset.from_list(rows), rubric=vf.Rubric([correct]))


class Guess(vf.MultiTurnEnv):
    async def env_response(self, messages, state, **rest):
        guess, number = int(messages[-1]["content"]), int(state["answer"])
        state["won"] = guess == number
        text = "Right." if state["won"] else "Too low." if guess < number else "Too high."
        said = [{"role": "user", "content": text}]
        if state["won"]:
            state["final_env_response"] = said
        return said


def guess():
    async def won(state) -> float:
        return float(state.get("won", False))

    rows = [{"question": "Guess my number from 1 to 20.", "answer": str(i + 1)} for i in range(20)]
    return Guess(dataset=Dataset.from_list(rows), eval_dataset=Dataset.from_list(rows[:5]), rubric=vf.Rubric([won]),
                 max_turns=4)


def ranked():
    async def best(states) -> list[float]:
        return [0.0 for _ in states]

    rows = [{"question": "?", "answer": "!"}] * 2
    return vf.SingleTurnEnv(dataset=Dataset.from_list(rows), rubric=vf.Rubric([best]))
