# R2E-Gym's tools over a repository, written again: one call of one tool, in its own sandbox (workshop.h). The files of
# this folder are one program, in the order that CMakeLists.txt has them.
#
# The working folder holds what the episode's calls have left, the repository in `testbed` among it. request.json says
# what to do; the answer, one JSON object on standard output, has what the tool printed and which files it changed.
# Where the sandbox shows the repository at /testbed, that is its place; elsewhere its name is exchanged in commands and
# outputs.
import argparse
import ast
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

HOME = os.getcwd()
PLACE, INSIDE = "/testbed", os.path.join(HOME, "testbed")
REQUEST, OWN_FOLDER, EDITS = "request.json", ".tools", "editor_state.json"
SNIPPET_LINES = 4
LONGEST_VIEW = 10000
LONGEST_UNCONDENSED = 110  # lines of a file that is shown whole without being asked to
CLIPPED = (
    "<response clipped><NOTE>To save on context only part of this file has been shown to you. You should retry this "
    "tool after you have searched inside the file with `grep -n` in order to find the line numbers of what you are "
    "looking for.</NOTE>"
)
REFUSED_COMMANDS = ("cd", "ipython", "jupyter", "pip", "nohup")
KEPT_BYTES = 1 << 18  # of each end of an output
TIMED_OUT = 124


def root():
    try:
        return PLACE if os.path.samefile(PLACE, INSIDE) else INSIDE
    except OSError:
        return INSIDE


ROOT = root()


def inward(text):
    return text if ROOT == PLACE else re.sub(r"(?<![\w.-])/testbed(?![\w.-])", lambda _: ROOT, text)


def outward(text):
    return text if ROOT == PLACE else text.replace(ROOT, PLACE)
