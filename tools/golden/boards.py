#!/usr/bin/env python3
"""Plays the recorded games of tests/recorded/boards again with Gymnasium's FrozenLake and gym-sokoban.

    python3 -m venv .recording
    .recording/bin/pip install gymnasium==1.4.0 && .recording/bin/pip install --no-deps gym-sokoban==0.0.6
    .recording/bin/python tools/golden/boards.py

From each recorded board, seed and list of actions it computes the boards, rewards and ends, FrozenLake's slips
included, and compares them. gym-sokoban needs the older package gym for its base classes only: stubs replace it.
"""
import importlib.metadata
import json
import lzma
import pathlib

import numpy as np
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv

from published_program import Program

RECORDED = pathlib.Path(__file__).resolve().parents[2] / "tests" / "recorded" / "boards"
LAKE_ACTIONS = ["Left", "Down", "Right", "Up"]
SOKOBAN_ACTIONS = ["", "Up", "Down", "Left", "Right"]
SOKOBAN_CELLS = "#_O√XPS"  # S: the player on a target
SOKOBAN = {f"gym_sokoban.envs.{name}": f"gym_sokoban/envs/{name}.py"
           for name in ("room_utils", "render_utils", "sokoban_env")}


def lake(game):
    rows, config = game["board"].split("\n"), game["config"]
    env = FrozenLakeEnv(desc=rows, is_slippery=config["is_slippery"], success_rate=config["success_rate"])
    env.reset(seed=game["seed"])
    for step in game["trace"]:
        before = env.s
        _, reward, done, _, _ = env.step(LAKE_ACTIONS.index(step["action"]))
        place = divmod(int(env.s), len(rows[0]))
        shown = [["_OG"["FHG".index(tile.replace("S", "F"))] for tile in row] for row in rows]
        tile = rows[place[0]][place[1]]
        shown[place[0]][place[1]] = {"H": "X", "G": "√"}.get(tile, "P")
        yield {"observation_grid": "\n".join(map("".join, shown)), "reward": reward, "done": done,
               "success": tile == "G", "effective": before != env.s}


def sokoban(game):
    config = game["config"]
    env = PROGRAM.SokobanEnv((config["dim_x"], config["dim_y"]), config["max_steps"], config["num_boxes"], reset=False)
    env.render = lambda mode: None
    cells = np.array([[SOKOBAN_CELLS.index(cell) for cell in row] for row in game["board"].split("\n")])
    env.room_fixed = np.select([cells == 0, np.isin(cells, [2, 3, 6])], [0, 2], 1)
    env.room_state = np.where(cells == 6, 5, cells)
    env.player_position = np.argwhere(env.room_state == 5)[0]
    env.num_env_steps = 0
    for step in game["trace"]:
        before = env.player_position
        _, reward, done, _ = env.step(SOKOBAN_ACTIONS.index(step["action"]))
        shown = np.where((env.room_state == 5) & (env.room_fixed == 2), 6, env.room_state)
        yield {"observation": "\n".join("".join(SOKOBAN_CELLS[cell] for cell in row) for row in shown),
               "reward": reward, "done": done, "success": env.boxes_on_target == env.num_boxes,
               "effective": not np.array_equal(before, env.player_position)}


PROGRAM = Program(pathlib.Path(importlib.metadata.distribution("gym-sokoban").locate_file("")), SOKOBAN)


def main():
    for name, play in (("frozen_lake", lake), ("sokoban_simple", sokoban), ("sokoban_larger", sokoban)):
        games = [json.loads(line) for line in lzma.open(RECORDED / (name + ".jsonl.xz"), "rt", encoding="utf-8")]
        actions = 0
        for game in games:
            for step, played in zip(game["trace"], play(game), strict=True):
                different = {key: value for key, value in played.items() if value != step[key]}
                assert not different, (name, game["seed"], step, different)
                actions += 1
        print(f"{name}: {len(games)} games, {actions} actions, all equal")


if __name__ == "__main__":
    main()
