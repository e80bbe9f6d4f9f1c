"""An environment whose episodes fail in every way that an environment can, chosen by the task's seed."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
from carnot_environment import Environment, Reply, serve
from carnot_protocol import take_pipes

FAULTS = ["kill", "exit", "hang", "slow", "garbage", "cut", "answer twice", "answer another", "raise", "raise in reset",
          "reward nan", "reward infinite", "reward text", "no text", "unknown outcome", "close output", "print",
          "children", "sys.exit"]


def write(text):
    """Bypasses the file's own answers."""
    os.write(answers, text.encode())


class Faulty(Environment):
    max_turns = 4
    replay = True

    def __init__(self, share=0.5, hang_seconds=60):
        self.share, self.hang_seconds = share, hang_seconds

    def reset(self, task):
        self.seed, self.turn = task.seed, 0
        is_faulty = task.seed % 1000 < 1000 * self.share
        self.fault = FAULTS[task.seed // 1000 % len(FAULTS)] if is_faulty else ""
        self.when = 1 + task.seed // 100000 % 3
        if self.fault == "raise in reset":
            raise RuntimeError("no such task")
        return "task %d" % task.seed

    def step(self, response):
        self.turn += 1
        if self.turn == self.when and self.fault:
            return self.go_wrong(response)
        return self.right(response)

    def right(self, response):
        """The test computes the same."""
        reward = (self.seed % 97 + len(response)) * self.turn
        return Reply("turn %d" % self.turn, reward=reward) if self.turn < 3 else Reply(reward=reward, done=True)

    def go_wrong(self, response):
        if self.fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "exit":
            os._exit(3)
        if self.fault == "hang":
            time.sleep(self.hang_seconds)
        if self.fault == "slow":
            time.sleep(0.01)
        if self.fault == "garbage":
            write("Traceback (most recent call last):\n")
        if self.fault == "cut":
            write('{"id": 3, "reward": 1')
            os._exit(0)
        if self.fault == "answer twice":
            write('{"id": 1}\n')
        if self.fault == "answer another":
            write('{"id": 123456789, "reward": 1000}\n')
        if self.fault == "raise":
            raise ValueError("this episode is lost")
        if self.fault == "reward nan":
            return Reply("", reward=float("nan"))
        if self.fault == "reward infinite":
            return Reply("", reward=float("inf"))
        if self.fault == "reward text":
            reply = self.right(response)
            reply.to_json = lambda _: {"text": "", "reward": "1000"}
            return reply
        if self.fault == "no text":
            return 1000
        if self.fault == "unknown outcome":
            return Reply("", reward=1000, outcome="won")
        if self.fault == "close output":
            os.close(answers)
        if self.fault == "children":
            subprocess.run(["cat"], check=True)
            subprocess.run(["echo", '{"id": 2, "reward": 1000}'], check=True)
        if self.fault == "sys.exit":
            sys.exit(3)
        if self.fault == "print":
            print('{"id": 2, "reward": 1000}')
        return self.right(response)


answers = take_pipes()[1]
serve(Faulty)
