"""Carnot's environments as verifiers.MultiTurnEnv. Needs the package verifiers, up to 0.3.

    def load_environment():
        return CarnotEnv(World("frozen_lake"))
"""
import asyncio
import json

try:
    import datasets
    import verifiers as vf
    from verifiers import MultiTurnEnv
    from verifiers.utils.message_utils import normalize_messages
except ImportError as error:
    raise ImportError("carnot_rl_core.verifiers needs the package verifiers up to 0.3: "
                      "pip install 'verifiers<0.4'") from error


def rows(world, split, wanted):
    """Tasks as rows of a data set; each is made again when it is played."""
    for index in range(min(wanted, world.num_tasks(split) or wanted)):
        episode = world.make(split, index)
        opening = episode.open()
        tools = [tool["function"] for tool in opening.tools]
        yield {"prompt": opening.messages, "answer": next(iter(episode.ground_truth), ""),
               "info": json.dumps({"split": split, "index": index, "tool_defs": tools})}


def reward(state):
    return sum(reply.reward + reply.penalty for reply in state["replies"])


def success(state):
    return float(state["replies"][-1].success) if state["replies"] else 0.0


class CarnotEnv(MultiTurnEnv):
    """The first `num_tasks` training tasks of a world, and `num_eval_tasks` validation tasks for evaluation."""

    def __init__(self, world, num_tasks=1000, num_eval_tasks=100, **options):
        super().__init__(dataset=lambda: datasets.Dataset.from_list(list(rows(world, "train", num_tasks))),
                         eval_dataset=lambda: datasets.Dataset.from_list(
                             list(rows(world, "validation", num_eval_tasks))),
                         rubric=vf.Rubric(funcs=[reward, success], weights=[1.0, 0.0]), **options)
        self.world = world

    async def setup_state(self, state):
        task = state["info"]
        state["episode"], state["replies"] = self.world.make(task["split"], task["index"]), []
        state["episode"].open()

    async def add_model_response(self, state, prompt_messages, response):
        """The last response is answered too, which verifiers' env_response() alone would leave out."""
        await super().add_model_response(state, prompt_messages, response)
        message = response.message
        calls = [{"name": call.name, "arguments": call.arguments, "id": call.id} for call in message.tool_calls or []]
        reply = await asyncio.to_thread(state["episode"].step, message.content or "", calls)
        if reply.outcome == "infra_failed":
            raise vf.InfraError(reply.observation or "the environment failed")
        state["replies"].append(reply)
        state["trajectory"][-1]["reward"] = reply.reward + reply.penalty

    @vf.stop
    async def episode_over(self, state):
        return bool(state["replies"]) and state["replies"][-1].done

    async def env_response(self, messages, state, **kwargs):
        return normalize_messages(state["replies"][-1].messages, field_name="reply.messages")

    async def get_prompt_messages(self, state):
        """A fresh prompt replaces the conversation."""
        if state["replies"] and state["replies"][-1].form == "fresh_prompt":
            return await self.env_response([], state)
        return await super().get_prompt_messages(state)
