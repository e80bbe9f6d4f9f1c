"""Carnot's environments as gymnasium.Env: observations and actions are texts. Needs the package gymnasium.

    env = TextEnv(World("frozen_lake"))
    observation, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step("<think> east </think> <answer> Right </answer>")
"""
import json

try:
    import gymnasium
except ImportError as error:
    raise ImportError("carnot_rl_core.gymnasium needs the package gymnasium: pip install gymnasium") from error

TASKS = 2**31
LONGEST = 2**20


class AnyText(gymnasium.spaces.Text):
    """Texts of any letters; samples are of the space's own few."""

    def __init__(self, seed=None):
        super().__init__(min_length=0, max_length=LONGEST, seed=seed)

    def contains(self, x):
        return isinstance(x, str) and len(x) <= LONGEST

    def sample(self, mask=None, probability=None):
        length = int(self.np_random.integers(1, 33))
        return "".join(self.np_random.choice(list(self.characters), size=length))


class TextEnv(gymnasium.Env):
    """Tasks of one split of a world. reset(options={"index": 3}) chooses the task, reset(seed=...) draws one.

    The reward is the reward of the turn and its penalty. An episode is terminated where the world ended it, truncated
    where a budget was spent or something failed that is not the policy's; info["outcome"] says which. A call of a tool
    is the text {"name": ..., "arguments": {...}}.
    """
    metadata = {"render_modes": []}

    def __init__(self, world, split="train"):
        self.world, self.split = world, split
        self.observation_space, self.action_space = AnyText(), AnyText()
        self.episode = self.tools = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        index = (options or {}).get("index")
        if index is None:
            index = int(self.np_random.integers(self.world.num_tasks(self.split) or TASKS))
        self.episode = self.world.make(self.split, index)
        opening = self.episode.open()
        self.tools = opening.tools
        info = {"index": index, "messages": opening.messages, "tools": opening.tools, **self.episode.info}
        return "\n\n".join(message["content"] for message in opening.messages), info

    def step(self, action):
        call = self.call_in(action)
        reply = self.episode.step("", [call]) if call else self.episode.step(action)
        terminated = reply.outcome in ("finished", "unparsable", "tool_failed")
        info = {"success": reply.success, "valid_action": reply.valid_action, "outcome": reply.outcome,
                "messages": reply.messages, "form": reply.form, "tool": reply.tool, "status": reply.status,
                **reply.measures}
        return reply.observation, reply.reward + reply.penalty, terminated, reply.done and not terminated, info

    def call_in(self, action):
        if not self.tools or not action.lstrip().startswith("{"):
            return None
        try:
            call = json.loads(action)
        except ValueError:
            return None
        return call if isinstance(call.get("name"), str) else None
