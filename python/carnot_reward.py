"""Scores responses for Carnot with your Python functions: `env.reward: my_reward.py:score` in a recipe.

    def score(completions, answer, **columns):
        return [1.0 if a in c else 0.0 for c, a in zip(completions, answer)]

The function gets lists, one entry for each response, and returns as many numbers. It may ask for: `completions` (the
responses), `prompts` (what they answer, as text), `answers` (a list of correct answers each), and the columns of the
data set by name. Each call has one or several groups: all responses to a task, one after the other. An exception is an
infrastructure failure of every response of the call; a score that is not a finite number, of its own response. Of
several functions, one that returns None for a response leaves it to the others. Carnot starts this file; do not import
it.

A function written for verl, compute_score(data_source, solution_str, ground_truth, extra_info=None), scores one response
at a time and returns a number, or a dictionary with "score".
"""

import inspect
import math
import sys

import carnot_protocol


def of_verl(function):
    """The function with Carnot's signature, if it has verl's."""
    if not {"solution_str", "ground_truth"} <= set(inspect.signature(function).parameters):
        return function

    def scores(completions, answers, **columns):
        found = []
        for i, (response, right) in enumerate(zip(completions, answers)):
            row = {name: values[i] for name, values in columns.items()}
            try:
                score = function(row.get("data_source"), response, right[0] if len(right) == 1 else right,
                                 row.get("extra_info"))
                found.append(score["score"] if isinstance(score, dict) else score)
            except Exception as error:
                found.append(error)  # of this response only
        return found

    return scores


class Scorer:
    def __init__(self, function):
        self.name = function.__name__
        function = self.function = of_verl(function)
        parameters = inspect.signature(function).parameters.values()
        self.takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
        self.names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        self.required = [p.name for p in parameters if p.name in self.names and p.default is p.empty]

    def check(self, columns):
        missing = [name for name in self.required if name not in columns]
        if missing:
            raise TypeError("%s asks for %s; the rows have %s" % (self.name, ", ".join(missing), ", ".join(columns)))

    def scores(self, requests):
        pairs = [(request, response) for request in requests for response in request["responses"]]
        columns = {key: [request["row"].get(key) for request, _ in pairs]
                   for key in dict.fromkeys(key for request in requests for key in request["row"])}
        columns.update(completions=[response for _, response in pairs],
                       prompts=[request["prompt"] for request, _ in pairs],
                       answers=[request["answers"] for request, _ in pairs])
        self.check(columns)
        chosen = columns if self.takes_all else {name: columns[name] for name in self.names if name in columns}
        made = self.function(**chosen)
        if not hasattr(made, "__iter__"):
            raise TypeError("%s returned %r; expected a list of numbers" % (self.name, made))
        scores = list(made)
        if len(scores) != len(pairs):
            raise ValueError("%s returned %s for %s" % (self.name, counted(len(scores), "score"),
                                                        counted(len(pairs), "response")))
        return scores

    def number(self, score):
        if isinstance(score, Exception):
            raise score
        try:
            value = float(score)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise ValueError("%s returned the score %r; expected a finite number" % (self.name, score))
        return value


def counted(count, thing):
    return "%d %s%s" % (count, thing, "" if count == 1 else "s")


class RewardServer(carnot_protocol.Server):
    def __init__(self, specs):
        super().__init__()
        self.specs, self.scorers = specs, []

    async def hello(self, request):
        self.scorers = [Scorer(carnot_protocol.load(spec)) for spec in self.specs]
        for scorer in self.scorers:
            scorer.check([*request["row"], "completions", "prompts", "answers"])
        return {"protocol": carnot_protocol.PROTOCOL, "batch": True}

    def answer_batch(self, requests):
        try:
            scores = zip(*[scorer.scores(requests) for scorer in self.scorers])
        except BaseException as error:
            return [self.failure(request, error) for request in requests]
        return [self.line({"id": request["id"], "scores": [self.answered(next(scores)) for _ in request["responses"]]},
                          request) for request in requests]

    def answered(self, scores):
        """The functions' scores of one response, in order."""
        try:
            if all(score is None for score in scores) and len(scores) > 1:
                raise ValueError("no function returned a score")
            return {"values": {str(i): scorer.number(score) for i, (scorer, score) in enumerate(zip(self.scorers, scores))
                               if score is not None or len(scores) == 1}}
        except Exception as error:
            return {"problem": self.failures.text_of(error)}


if __name__ == "__main__":
    carnot_protocol.answer_forever(RewardServer(sys.argv[1:]))
