"""Trackers for Carnot in Python: derive from Tracker, call serve(). No dependencies, Python 3.8 on.

    from carnot_tracker import Tracker, serve

    class PrintTracker(Tracker):
        def metrics(self, stage, step, values):
            print(stage, step, values.get("actor/entropy"))

    serve(PrintTracker)

In a recipe:  track: {command: [python3, my_tracker.py, colour=red]}

Carnot starts the script and writes JSON lines to its standard input (docs/trackers.md), which serve() reserves for
itself; arguments such as colour=red become keyword arguments of the class. What the script prints goes into Carnot's
log. An exception is printed, and the next message is handled as usual; only one in start() ends the script, and Carnot
starts it again. Nothing that happens here changes or delays the run.
"""

import json
import os
import sys
import traceback

from carnot_protocol import take_pipes

__all__ = ["Run", "Tracker", "serve"]

PROTOCOL = 1


class Run:
    """The argument of start()."""

    def __init__(self, message):
        self.id = message["run"]  # the same whenever this run continues
        self.name = message["name"]  # of the run folder
        self.folder = message["folder"]
        self.config = message["config"]  # every setting by dotted key: "train.learning_rate"
        self.resumed = message["resumed"]  # it continues from a checkpoint
        self.restarted = message["restarted"]  # the script ended before, and the messages of that time are not repeated


class Tracker:
    """Override what you need."""

    def start(self, run):
        """Called once, first."""

    def stage(self, stage, step, steps):
        """`stage` ("sft", "train") continues after `step` of `steps`; later steps that were reported before come
        again."""

    def metrics(self, stage, step, values):
        """Numbers by name (docs/metrics.md). A step may come again, with the same or with further names."""

    def transcript(self, transcript):
        """One trajectory: a dict with step, uid, traj_id, outcome, success, score, turns, gts, measures, input, output."""

    def dropped(self, lines):
        """This many messages are missing here, because this script did not keep up."""

    def end(self, status, message):
        """Called once, last: "complete", "interrupted", "failed" (then `message` says why) or, if Carnot was killed,
        "lost"."""


def _settings(arguments):
    """name=value; values are JSON if they parse as such."""
    settings = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals or not name.isidentifier():
            raise SystemExit("expected arguments such as project=agents, found %r" % argument)
        try:
            settings[name] = json.loads(value)
        except ValueError:
            settings[name] = value
    return settings


def _handle(tracker, message):
    kind = message["type"]
    if kind == "stage":
        tracker.stage(message["stage"], message["step"], message["steps"])
    elif kind == "metrics":
        # A number that is not finite is null.
        values = {name: value for name, value in message["metrics"].items() if value is not None}
        tracker.metrics(message["stage"], message["step"], values)
    elif kind == "transcript":
        tracker.transcript(message)
    elif kind == "dropped":
        tracker.dropped(message["lines"])
    elif kind == "end":
        tracker.end(message["status"], message.get("message", ""))


def serve(tracker_class, lines=None):
    """Handles messages until the run ends."""
    lines = os.fdopen(take_pipes()[0], "rb") if lines is None else lines
    tracker = tracker_class(**_settings(sys.argv[1:]))
    first = lines.readline()
    if not first:
        return
    start = json.loads(first)
    if start["protocol"] != PROTOCOL:
        raise SystemExit("Carnot speaks protocol %s of trackers, this script %d" % (start["protocol"], PROTOCOL))
    tracker.start(Run(start))
    ended = False
    for line in lines:
        if not line.endswith(b"\n"):
            break  # Carnot was killed while writing
        message = json.loads(line)
        ended = ended or message["type"] == "end"
        try:
            _handle(tracker, message)
        except Exception:
            traceback.print_exc()
    if not ended:
        tracker.end("lost", "Carnot ended without a word")
    sys.stdout.flush()
