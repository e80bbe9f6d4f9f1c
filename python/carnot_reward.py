"""Scores responses for Carnot with a Python function of yours: `env.reward: my_reward.py:score` in a recipe.

    def score(completions, answer, **columns):
        return [1.0 if a in c else 0.0 for c, a in zip(completions, answer)]

The function gets lists, one entry for each response, and returns as many numbers. It may ask for: `completions` (the
responses), `prompts` (what they answer, as text), `answers` (right answers, a list each), and the columns of the data
set by their names. Carnot starts this file; it is not to be imported.
"""

import inspect
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import carnot_environment


class Scorer:
    def __init__(self, function):
        self.function = function
        parameters = inspect.signature(function).parameters.values()
        self.takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
        self.names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        self.required = [p.name for p in parameters if p.name in self.names and p.default is p.empty]

    def check(self, columns):
        missing = [name for name in self.required if name not in columns]
        if missing:
            raise TypeError("the function asks for %s; the rows have %s" % (", ".join(missing), ", ".join(columns)))

    def scores(self, requests):
        columns = {key: [request["row"].get(key) for request in requests]
                   for key in dict.fromkeys(key for request in requests for key in request["row"])}
        columns.update(completions=[request["response"] for request in requests],
                       prompts=[request["prompt"] for request in requests],
                       answers=[request["answers"] for request in requests])
        self.check(columns)
        chosen = columns if self.takes_all else {name: columns[name] for name in self.names if name in columns}
        scores = list(self.function(**chosen))
        if len(scores) != len(requests):
            raise ValueError("the function returned %d scores for %d responses" % (len(scores), len(requests)))
        return [float(score) for score in scores]


class RewardServer(carnot_environment.Server):
    """hello and score, of carnot_environment's server."""

    def __init__(self, function):
        super().__init__(None)
        self.scorer = Scorer(function)

    async def hello(self, request):
        self.scorer.check([*request["row"], "completions", "prompts", "answers"])
        return {"protocol": carnot_environment.PROTOCOL, "batch": True}

    async def score(self, request):
        return {"score": self.scorer.scores([request])[0]}

    def answer_batch(self, requests):
        try:
            scores = self.scorer.scores(requests)
        except Exception:
            # One bad response must not cost the others their scores.
            return [carnot_environment._finish(self.answer(request)) for request in requests]
        return [self.line({"id": request["id"], "score": score}, request) for request, score in zip(requests, scores)]


if __name__ == "__main__":
    carnot_environment.answer_forever(RewardServer(carnot_environment.load(sys.argv[1])))
