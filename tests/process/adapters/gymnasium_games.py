"""Games with action spaces that Gymnasium's own text games lack."""
import gymnasium
import numpy
from gymnasium.spaces import Box, Discrete, MultiDiscrete, Text


class Echo(gymnasium.Env):
    """Repeats what was said; over after two steps."""

    observation_space = Text(100)
    action_space = Text(max_length=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 2
        return "silence", {}

    def step(self, action):
        self.left -= 1
        return action, 0.25, self.left == 0, False, {"is_success": action == "hello"}


class Dials(gymnasium.Env):
    """The observation is both dials."""

    observation_space = Box(0, 9, (2,), numpy.float32)
    action_space = MultiDiscrete([3, 10])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(10))
        return numpy.array([self.left, seed % 2], numpy.float32), {}

    def step(self, action):
        return numpy.asarray(action, numpy.float32), 1.0, True, False, {}


class Steered(gymnasium.ActionWrapper):
    """Two actions instead of a Box."""

    def __init__(self, game):
        super().__init__(game)
        self.action_space = Discrete(2)

    def action(self, action):
        return numpy.array([2.0 * action - 1.0], numpy.float32)


gymnasium.register("Echo-v0", Echo)
gymnasium.register("Dials-v0", Dials)
