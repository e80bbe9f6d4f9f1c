#!/usr/bin/env python3
"""Plays games with ALFWorld itself and records what it answers, for tests/golden/alfworld.

Run from the repository root with:  pip install alfworld==0.4.2 textworld==1.7.0
    python3 tools/golden/alfworld_plays.py "$CARNOT_DATA/alfworld"     # the published games of docs/data.md

plays.jsonl.xz: of the published games, three of each type of tasks, with different first objects, two of them in scenes
that the training split lacks. invented_plays.jsonl.xz: the games in tests/tasks/alfworld. Commands are drawn by kind,
so that taking, heating, slicing and examining held objects are not rare; one in fifteen is not a command of the game.
Sliced objects are taken and examined. A line has the game's split and name, and for each step the command, the answer,
whether the game is won, and which admissible commands are new (`more`) and gone (`less`).
"""
import argparse
import json
import lzma
import pathlib
import random
import re
import tempfile

import textworld
from alfworld.agents.environment.alfred_tw_env import AlfredDemangler

INVENTED = pathlib.Path("tests/tasks/alfworld")
TARGET = pathlib.Path("tests/golden/alfworld")
GAMES_OF_TYPE = {"valid_seen": 1, "valid_unseen": 2}
STEPS = 60
WEIGHTS = {"help": 0.3, "inventory": 1, "look": 3, "go": 5, "open": 4, "close": 1, "take": 8, "move": 3, "use": 5,
           "clean": 6, "heat": 6, "cool": 6, "slice": 30, "examine": 2}
WANTED_PLACES = re.compile("go to (fridge|microwave|sinkbasin|desklamp|countertop|diningtable)")
WANTED_THINGS = re.compile("take (knife|butterknife|apple|bread|tomato|potato|lettuce|mug|cup|egg) .*")
NO_COMMANDS = ["go to nowhere 1", "take the mug", "", "open", "dance", "put mug 1 in/on desk 1", "examine fridge 9"]


def read_rows(folder, split):
    with lzma.open(folder / f"{split}.jsonl.xz", "rt", encoding="utf-8", newline="\n") as lines:
        return [json.loads(line) for line in lines]


def write_game(folder, row, path):
    """Writes a row as the file game.tw-pddl that alfworld-download brings."""
    grammar = (folder / "game_grammar.twl2").read_text(encoding="utf-8")
    grammar = grammar.replace("Your task is to: UNKNOWN GOAL.", row["task"][0])
    domain = (folder / "game_domain.pddl").read_text(encoding="utf-8")
    path.write_text(json.dumps({"pddl_domain": domain, "grammar": grammar, "pddl_problem": row["pddl_problem"],
                                "solvable": True, "walkthrough": row["walkthrough"]}), encoding="utf-8")


def open_game(path):
    infos = textworld.EnvInfos(won=True, admissible_commands=True)
    return textworld.start(str(path), infos, wrappers=[AlfredDemangler(shuffle=False)])


def chosen(rows, number):
    """`number` games of each type of tasks, first those about other objects."""
    of_type = {}
    for row in rows:
        of_type.setdefault(row["task_type"], {}).setdefault(row["task_id"].split("-")[1], row)
    return [row for _, games in sorted(of_type.items()) for row in list(games.values())[:number]]


def weight_of(command, holds):
    weight = WEIGHTS[command.split()[0]]
    if command.startswith("examine"):
        return 8 if holds and command.endswith(holds) else weight
    return weight * (4 if WANTED_PLACES.match(command) or WANTED_THINGS.match(command) else 1)


def drawn_command(commands, holds, stream):
    """A verb by the weight of its best command, then one of its commands by weight."""
    if stream.random() < 1 / 15:
        return stream.choice(NO_COMMANDS)
    of_verb = {}
    for command in commands:
        of_verb.setdefault(command.split()[0], []).append(command)
    weights = {verb: max(weight_of(command, holds) for command in some) for verb, some in of_verb.items()}
    verb = stream.choices(sorted(weights), [weights[verb] for verb in sorted(weights)])[0]
    return stream.choices(of_verb[verb], [weight_of(command, holds) for command in of_verb[verb]])[0]


class Player:
    """Draws commands, remembers what is held, and takes up what it has sliced."""

    def __init__(self, seed):
        self.stream, self.holds, self.wishes = random.Random(seed), "", []

    def next(self, admissible):
        while self.wishes:
            found = [command for command in admissible if command.startswith(self.wishes[0])]
            self.wishes.pop(0)
            if found:
                return self.carried_out(found[0])
        return self.carried_out(drawn_command(admissible, self.holds, self.stream))

    def carried_out(self, command):
        words = command.split()
        if command.startswith("take ") and " from " in command:
            self.holds = " ".join(words[1:3])
        if command.startswith("move "):
            self.holds = ""
        if command.startswith("slice "):
            thing = " ".join(words[1:3])
            self.wishes = [f"move {self.holds} ", f"take {thing} ", f"examine {thing}", f"move {thing} ", "look"]
        return command


def play(folder, row, seed, scratch):
    path = scratch / f"{row['trial_id']}.tw-pddl"
    write_game(folder, row, path)
    env = open_game(path)
    state = env.reset()
    admissible = sorted(set(state.admissible_commands))
    first = {"observation": state.feedback, "admissible": admissible}
    steps, player = [], Player(seed)
    while len(steps) < STEPS and not state.won:
        command = player.next(admissible)
        state, _, _ = env.step(command)
        now = sorted(set(state.admissible_commands))
        steps.append({"command": command, "observation": state.feedback, "won": bool(state.won),
                      "more": sorted(set(now) - set(admissible)), "less": sorted(set(admissible) - set(now))})
        admissible = now
    env.close()
    return {"split": row["split"], "game": f"{row['task_id']}/{row['trial_id']}", **first, "steps": steps}


def record(folder, rows, name):
    plays = []
    with tempfile.TemporaryDirectory() as scratch:
        for row in rows:
            plays.append(play(folder, row, len(plays), pathlib.Path(scratch)))
            print(plays[-1]["game"], len(plays[-1]["steps"]), flush=True)
    text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in plays)
    (TARGET / name).write_bytes(lzma.compress(text.encode(), preset=9))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    published = [row for split, number in GAMES_OF_TYPE.items() for row in chosen(read_rows(folder, split), number)]
    invented = [json.loads(line) for split in ("train", "valid_seen", "valid_unseen")
                for line in (INVENTED / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()]
    record(folder, published, "plays.jsonl.xz")
    record(folder, invented, "invented_plays.jsonl.xz")


if __name__ == "__main__":
    main()
