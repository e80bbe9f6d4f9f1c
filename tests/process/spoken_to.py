"""A program of python/, driven as Carnot drives it."""
import json
import os
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
WORLDS = os.path.join(HERE, "adapters")
PYTHON = os.path.abspath(os.path.join(HERE, "..", "..", "python"))


class Process:
    """One that answers requests. `hello`: what else the greeting says."""

    def __init__(self, script, *arguments, hello=None, **settings):
        environment = dict(os.environ, PYTHONPATH=WORLDS + os.pathsep + PYTHON, CARNOT_PROTOCOL="1")
        environment["PATH"] = os.path.dirname(sys.executable) + os.pathsep + environment["PATH"]
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([sys.executable, script, *arguments], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        start_new_session=True)
        self.requests, self.answers = 0, {}
        self.greeting = self.ask(op="hello", protocol=1, **(hello or {"settings": settings}))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.errors.close()

    def send(self, **request):
        self.requests += 1
        self.process.stdin.write(json.dumps(dict(request, id=self.requests)) + "\n")
        self.process.stdin.flush()
        return self.requests

    def receive(self, id):
        """The answer; an error if the process ends, or answers nothing for ten minutes."""
        while id not in self.answers:
            patience = threading.Timer(600, self.process.kill)
            patience.start()
            answer = json.loads(self.process.stdout.readline() or '{"id": 0}')
            patience.cancel()
            if answer["id"] == 0:
                raise EOFError("the process ended")
            self.answers[answer.pop("id")] = answer
        return self.answers.pop(id)

    def ask(self, **request):
        return self.receive(self.send(**request))

    def log(self):
        """What it wrote to standard error."""
        self.errors.seek(0)
        return self.errors.read()

    def reset(self, episode=1, split="train", task=0, seed=5):
        return self.ask(op="reset", episode=episode, split=split, task=task, seed=seed)

    def step(self, text, episode=1, calls=()):
        calls = [{"name": name, "arguments": arguments, "id": ""} for name, arguments in calls]
        return self.ask(op="step", episode=episode, text=text, **({"tool_calls": calls} if calls else {}))

    def close(self, episode=1):
        self.send(op="close", episode=episode)
