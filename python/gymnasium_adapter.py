"""Environments of Gymnasium for Carnot: small games in text. Tried with gymnasium 1.4.0.

    env:
      name: process
      command: [python3, python/gymnasium_adapter.py]
      settings: [id=FrozenLake-v1, is_slippery=false, "actions=left, down, right, up"]

Settings:
    id         of the environment, as gymnasium.make() takes it ("my_module:MyGame-v0" imports the module first)
    actions    names of a Discrete space's actions, in order; default: numbers
    prompt     what the game is about, shown first
    max_turns  of an episode; default: the environment's own limit, or 100
    wrapper    "my_module:MyWrapper", put around it: for action spaces that are not discrete, observations in words
All other settings go to gymnasium.make(). Observations are what the render mode "ansi" draws, or else the
observation as JSON. An episode is a success if the last `info` says so (`is_success`, `success`), or else if its return
reaches the environment's reward threshold, or, without a threshold, if its last reward is positive.
"""
import functools
import json
import re

import gymnasium
import numpy
from gymnasium.spaces import Discrete, MultiBinary, MultiDiscrete, Text

from carnot_environment import Environment, Reply, load, serve


@functools.lru_cache(maxsize=None)
def draws_text(id, make):
    game = gymnasium.make(id, **json.loads(make))
    modes = game.metadata.get("render_modes") or []
    game.close()
    return "ansi" in modes


def without_colours(text):
    """A cell that a terminal would colour is [marked]."""
    marked = re.sub(r"\x1b\[[0-9;]+m(.*?)\x1b\[0m", r"[\1]", text, flags=re.DOTALL)
    return re.sub(r"\x1b\[[0-9;]*m", "", marked).strip("\n")


def plain(value):
    """An observation as JSON; numbers with four digits."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return plain(value.tolist())
    return float("%.4g" % value) if isinstance(value, float) else value


class Gymnasium(Environment):
    def __init__(self, id, actions=(), prompt="", max_turns=0, wrapper="", **make):
        if not wrapper and draws_text(id, json.dumps(make)):
            make.setdefault("render_mode", "ansi")
        self.game = gymnasium.make(id, **make)
        if wrapper:
            self.game = load(wrapper)(self.game)
        self.space = self.game.action_space
        if not isinstance(self.space, (Discrete, MultiDiscrete, MultiBinary, Text)):
            raise TypeError("%s: actions of %s cannot be written as text; a wrapper can make them discrete"
                            % (id, self.space))
        words = re.findall(r"[^\s,\[\]]+", actions) if isinstance(actions, str) else actions
        self.names = [str(word) for word in words]
        if self.names and not (isinstance(self.space, Discrete) and len(self.names) == self.space.n):
            raise ValueError("actions: %d names for the actions of %s" % (len(self.names), self.space))
        if isinstance(self.space, Discrete) and not self.names:
            self.names = [str(self.space.start + i) for i in range(self.space.n)]
        self.prompt = prompt or "You play %s." % id
        self.max_turns = max_turns or self.game.spec.max_episode_steps or 100
        self.replay = not self.game.spec.nondeterministic
        self.total, self.steps = 0.0, 0

    def reset(self, task):
        # Odd seeds are for validation, so that the splits never share a task. 31 bits: some games accept no more.
        seed = 2 * (task.seed % 2**30) + (task.split == "validation")
        self.observation, _ = self.game.reset(seed=seed)
        return "%s\n\n%s\n\n%s" % (self.prompt, self.shown(), self.legal_actions())

    def step(self, response):
        action = self.action(response.tag("answer"))
        if action is None:
            return Reply("That is not an action. " + self.legal_actions(), penalty=-0.1, valid_action=False)
        self.observation, reward, terminated, truncated, info = self.game.step(action)
        self.total, self.steps = self.total + float(reward), self.steps + 1
        if not terminated and not truncated:
            return Reply(self.shown(), reward=reward)
        return Reply(self.shown(), reward=reward, done=True, success=self.is_success(float(reward), info),
                     outcome="finished" if terminated else "out_of_turns",
                     measures={"return": self.total, "steps": self.steps})

    def anchor(self):
        return json.dumps(plain(self.observation))

    def close(self):
        self.game.close()

    def shown(self):
        drawn = self.game.render() if self.game.render_mode == "ansi" else None
        if drawn is not None:
            return without_colours(drawn)
        return self.observation if isinstance(self.observation, str) else json.dumps(plain(self.observation))

    def legal_actions(self):
        if isinstance(self.space, Discrete):
            return "Actions: %s. Answer with one of them, like this: <answer>%s</answer>" % (
                ", ".join(self.names), self.names[0])
        if isinstance(self.space, Text):
            return "Answer with %d to %d characters, like this: <answer>text</answer>" % (
                self.space.min_length, self.space.max_length)
        counts = self.space.nvec.flatten() if isinstance(self.space, MultiDiscrete) else [2] * self.space.sample().size
        starts = self.space.start.flatten() if isinstance(self.space, MultiDiscrete) else [0] * len(counts)
        ranges = ", ".join("%d to %d" % (start, start + count - 1) for start, count in zip(starts, counts))
        example = " ".join(str(start) for start in starts)
        return "Answer with integers (%s), like this: <answer>%s</answer>" % (ranges, example)

    def action(self, answer):
        """The action that `answer` names; None if it is not an action."""
        if answer is None:
            return None
        if isinstance(self.space, Discrete):
            names = [name.lower() for name in self.names]
            return int(self.space.start) + names.index(answer.lower()) if answer.lower() in names else None
        if isinstance(self.space, Text):
            return answer if self.space.contains(answer) else None
        numbers = re.findall(r"-?\d{1,9}", answer)
        if len(numbers) != self.space.sample().size:
            return None
        action = numpy.array(numbers, self.space.dtype).reshape(self.space.shape)
        return action if self.space.contains(action) else None

    def is_success(self, reward, info):
        for key in ("is_success", "success"):
            if key in info:
                return bool(info[key])
        threshold = self.game.spec.reward_threshold
        return self.total >= threshold if threshold is not None else reward > 0


if __name__ == "__main__":
    serve(Gymnasium)
