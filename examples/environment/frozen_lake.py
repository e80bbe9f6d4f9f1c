"""FrozenLake as its player sees it, in few words: thoughts note the holes around, and only the action decides.

4x4 cells, four moves, two holes, slippery ice. The observation says the way to the goal, as the crow flies, and which
moves lead into a hole. Recipe: examples/environment/frozen_lake.yaml

For studies of where the signal belongs, `idle_words` words of demonstrated thoughts, at least, say nothing about the
game, each part of a sentence another than usual with chance `variety`; with `plan`, a thought ends with the move.
"""
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))
from carnot_environment import Environment, Reply, serve  # noqa: E402

SIZE = 4
MOVES = {"Left": (0, -1), "Down": (1, 0), "Right": (0, 1), "Up": (-1, 0)}
SIDES = {"Left": ("Up", "Down"), "Right": ("Up", "Down"), "Up": ("Left", "Right"), "Down": ("Left", "Right")}
IDLE = (("Now", "So", "Well", "Then"), ("morning", "wind", "sky", "air"), ("feels", "seems", "looks", "stays"),
        ("calm", "cold", "bright", "quiet"), ("today", "again", "still", "outside"))
CELLS = [(row, column) for row in range(SIZE) for column in range(SIZE)]


def moved(cell, action):
    row, column = cell[0] + MOVES[action][0], cell[1] + MOVES[action][1]
    return (row, column) if 0 <= row < SIZE and 0 <= column < SIZE else cell


def ways(goal, holes):
    """Moves to the goal from every cell that has a way around the holes."""
    distance, front = {goal: 0}, [goal]
    for cell in front:
        for action in MOVES:
            last = moved(cell, action)
            if last not in distance and last not in holes:
                distance[last] = distance[cell] + 1
                front.append(last)
    return distance


class FrozenLake(Environment):
    tokenizer_words = tuple(MOVES) + ("goal", "holes", "form", "system", "user", "assistant")
    tokenizer_added_tokens = ("<think>", "</think>", "<answer>", "</answer>")
    max_turns, max_response_tokens = 8, 12
    replay = True  # slips are drawn from the task's seed

    def __init__(self, success_rate=0.8, careless=0.5, holes=2, idle_words=0, variety=0.3, plan=False):
        self.success_rate, self.careless, self.num_holes = success_rate, careless, holes
        self.sentences, self.variety, self.plan = -(-idle_words // len(IDLE)), variety, plan
        self.max_response_tokens += self.sentences * len(IDLE) + 2 * plan
        if idle_words:
            self.tokenizer_words += tuple(word for part in IDLE for word in part)
        if plan:
            self.tokenizer_words += ("plan",)

    def reset(self, task):
        self.ice = random.Random(task.seed)
        self.demonstrator = random.Random(task.seed + 1)
        while True:
            cells = self.ice.sample(CELLS, 2 + self.num_holes)
            self.player, self.goal, self.holes = cells[0], cells[1], cells[2:]
            self.distance = ways(self.goal, self.holes)
            if self.distance.get(self.player, 0) >= 2:
                return self.state()

    def near_holes(self):
        return " ".join(["holes"] + [action for action in MOVES if moved(self.player, action) in self.holes])

    def state(self):
        rows, columns = self.goal[0] - self.player[0], self.goal[1] - self.player[1]
        way = ["Down" if rows > 0 else "Up"] * abs(rows) + ["Right" if columns > 0 else "Left"] * abs(columns)
        return f"goal {' '.join(way)} {self.near_holes()}"

    def step(self, response):
        action = (response.tag("answer") or "").strip()
        if action not in MOVES or response.tag("think") is None:
            return Reply("form", penalty=-0.1, valid_action=False)
        if self.ice.random() >= self.success_rate:
            action = self.ice.choice(SIDES[action])
        self.player = moved(self.player, action)
        if self.player == self.goal:
            return Reply(reward=1, done=True, success=True)
        return Reply(done=True) if self.player in self.holes else self.state()

    def demonstrate(self, observation, progress):
        """Walks to the goal; `careless` of its moves are random. Its thoughts do not reveal which."""
        moves = self.demonstrator.sample(list(MOVES), len(MOVES))
        best = min(moves, key=lambda action: self.distance.get(moved(self.player, action), len(CELLS)))
        action = moves[0] if self.demonstrator.random() < self.careless else best
        thought = [self.near_holes()] + [self.idle_word(part) for _ in range(self.sentences) for part in IDLE]
        return f"<think>{' '.join(thought + ['plan', action] * self.plan)}</think><answer>{action}</answer>"

    def idle_word(self, part):
        return self.demonstrator.choice(part[1:]) if self.demonstrator.random() < self.variety else part[0]


serve(FrozenLake)
