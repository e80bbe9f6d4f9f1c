"""Leaves a process behind as daemons do: an orphan that leads a session. It and this one hold `pipe` open."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
from carnot_environment import Environment, Reply, serve


def leave_daemon():
    if os.fork() > 0:
        os.wait()
        return
    os.setsid()
    if os.fork() > 0:
        os._exit(0)
    time.sleep(1000)
    os._exit(0)


class Leaving(Environment):
    tokenizer_words = ("task",)
    max_turns = 1

    def __init__(self, pipe, hangs=False):
        self.pipe, self.hangs = pipe, hangs
        if not hasattr(Leaving, "held"):
            Leaving.held = os.open(pipe, os.O_WRONLY)
            os.set_inheritable(Leaving.held, True)
            leave_daemon()

    def reset(self, task):
        return "task"

    def step(self, response):
        os.close(os.open(self.pipe + ".step", os.O_CREAT | os.O_WRONLY))
        while self.hangs:
            time.sleep(1000)
        return Reply(reward=len(response) % 2, done=True)


serve(Leaving)
