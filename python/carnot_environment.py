"""Environments for Carnot in Python: derive from Environment. No dependencies, Python 3.8 on.

    import random
    from carnot_environment import Environment, Reply, serve

    class Shopping(Environment):
        things = ("bread", "milk", "eggs", "tea", "salt", "rice")
        tokenizer_words = things + ("buy", "bought", "no", "user", "assistant")
        max_turns, max_response_tokens = 3, 1

        def reset(self, task):
            self.missing = random.Random(task.seed).sample(self.things, 3)
            return "buy " + " ".join(self.missing)

        def step(self, response):
            if response.strip() not in self.missing:
                return "no"
            self.missing.remove(response.strip())
            return Reply("bought", reward=1 / 3, done=not self.missing, success=not self.missing)

    serve(Shopping)

In a recipe:  env: {name: process, command: [python3, shopping.py]}
Without the last line:  command: [python3, -m, carnot_environment, "shopping.py:Shopping"]

Carnot starts the script and talks to it in JSON over standard input and output (docs/process_environments.md). What the
script prints goes to standard error, into Carnot's log. An exception ends the episode as an infrastructure failure,
which never becomes a reward; the script continues with the next one.
"""

import copy
import inspect
import re
import sys

from carnot_protocol import PROTOCOL, Server, answer_forever, finish, load

__all__ = ["Environment", "Prompt", "Reply", "Response", "Task", "Tool", "ToolCall", "load", "serve"]


class Task:
    """The task that reset() is to open. Equal tasks must be identical: draw only from `seed`, or look up row
    `index`."""

    def __init__(self, index, seed, split):
        self.index = index  # 0, 1, 2, ...
        self.seed = seed  # below 2**53, different for each task
        self.split = split  # "train" or "validation": they must not share tasks


class ToolCall:
    def __init__(self, name, arguments, id=""):
        self.name = name
        self.arguments = arguments  # a dict
        self.id = id


class Response(str):
    """What the policy said, with the tools that it calls."""

    tool_calls = ()
    problem = ""  # why what looks like a tool call cannot be read

    def tag(self, name):
        """The text between the first <name> and the </name> after it, stripped; None if there is no such pair."""
        found = re.search("<%s>(.*?)</%s>" % (re.escape(name), re.escape(name)), self, re.DOTALL)
        return found.group(1).strip() if found else None


class Tool:
    """A tool that a prompt offers. `parameters`: a JSON schema."""

    def __init__(self, name, description="", parameters=None):
        self.name, self.description = name, description
        self.parameters = parameters or {"type": "object", "properties": {}}


class Prompt:
    """How an episode begins, or how it continues with a whole new context. A str is enough if only `user` is needed."""

    def __init__(self, user="", system="", history=(), assistant_prefix="", tools=(), ground_truth=(), info=None):
        self.user, self.system, self.assistant_prefix = user, system, assistant_prefix
        self.history = list(history)  # {"role": ..., "content": ...} each, between the system message and `user`
        self.tools = list(tools)
        self.ground_truth = list(ground_truth)  # answers that count as correct
        self.info = dict(info or {})  # about the task, for reports

    def to_json(self, is_opening):
        message = {"user": self.user}
        for key in ("system", "history", "assistant_prefix"):
            if getattr(self, key):
                message[key] = getattr(self, key)
        if self.tools:
            message["tools"] = [vars(tool) if isinstance(tool, Tool) else tool for tool in self.tools]
        if is_opening and self.ground_truth:
            message["ground_truth"] = [str(answer) for answer in self.ground_truth]
        if is_opening and self.info:
            message["info"] = {str(key): str(value) for key, value in self.info.items()}
        return message


class Reply:
    """The answer to a response. A str is enough if the episode continues with it as the next user message."""

    def __init__(self, text="", reward=0.0, done=False, success=False, penalty=0.0, valid_action=True, inline=False,
                 results=None, prompt=None, outcome="finished", tool="", status="", measures=None, answer=None):
        self.text = text
        self.reward = reward  # of this turn
        self.done = done
        self.success = success
        self.penalty = penalty  # at most 0: part of the training signal, never of the reported score
        self.valid_action = valid_action
        self.inline = inline  # the text continues the assistant's message, as a search result does
        self.results = results  # tool results instead of a user message: a str for each call, in order
        self.prompt = prompt  # a Prompt that replaces the whole context
        self.outcome = outcome  # how it ended: finished, out_of_turns, out_of_tokens, unparsable, tool_failed
        self.tool = tool  # the tool that the turn called, and the status of its result, for the metrics
        self.status = status
        self.measures = measures  # numbers of the finished episode, for the metrics
        self.answer = answer  # the final answer as a str, the same for all equal answers

    def to_json(self, response):
        message = {"text": self.text, "reward": float(self.reward)}
        for key in ("done", "success", "inline", "tool", "status", "answer"):
            if getattr(self, key) not in (False, "", None):
                message[key] = getattr(self, key)
        if self.penalty:
            message["penalty"] = float(self.penalty)
        if not self.valid_action:
            message["valid_action"] = False
        if self.outcome != "finished":
            message["outcome"] = self.outcome
        if self.measures:
            message["measures"] = {str(key): float(value) for key, value in self.measures.items()}
        if self.results is not None:
            ids = [call.id for call in response.tool_calls] + [""] * len(self.results)
            message["results"] = [{"call_id": i, "text": str(text)} for i, text in zip(ids, self.results)]
        if self.prompt is not None:
            prompt = self.prompt if isinstance(self.prompt, Prompt) else Prompt(self.prompt)
            message["prompt"] = prompt.to_json(is_opening=False)
        return message


class Environment:
    """One episode. A new object is made for each, with the recipe's `env.settings` as keyword arguments.

    `reset`, `step` and `close` may be coroutines (`async def`). Then all episodes run concurrently, in one event loop
    that lives as long as the process, and a waiting episode delays no other."""

    max_turns = 1
    max_response_tokens = 400
    stop = ()  # strings that end a response early and stay in it: "</search>"
    think_tag = "think"
    action_tags = ("answer",)
    replay = False  # True: the same task and responses get the same replies, so that rollouts may branch
    clone = False  # True: copy() works, which is faster
    answer_lead = ""  # what a response says right before its final answer; information gain needs it
    tokenizer_words = ()  # for a small model with its own tokenizer: words that are single tokens,
    tokenizer_added_tokens = ()  # tags that are,
    tokenizer_texts = ()  # and strings to train the rest from; without any, the rest is bytes

    def reset(self, task):
        """The first prompt of the task: a str or a Prompt."""
        raise NotImplementedError

    def step(self, response):
        """Answers a response: a str or a Reply."""
        raise NotImplementedError

    def step_batch(self, environments, responses):
        """Answers one response of each of `environments` together; override it if that is faster.

        `self` is one of them. With it, set `batch = True`."""
        return [environment.step(response) for environment, response in zip(environments, responses)]

    batch = False

    def copy(self):
        """An independent episode at the same state; with `clone = True`."""
        return copy.deepcopy(self)

    def anchor(self):
        """A key of the present state, equal for equal states of one task; "" without one."""
        return ""

    def demonstrate(self, observation, progress):
        """The next response of an expert, for SFT. `progress`: of SFT, from 0 to 1."""
        raise NotImplementedError

    def close(self):
        """The episode is over, or the rest of it is not needed."""


def _text_of(value, name):
    if not isinstance(value, str):
        raise TypeError("%s: expected a str, got %s" % (name, type(value).__name__))
    return value


def _opening(environment, made):
    prompt = made if isinstance(made, Prompt) else Prompt(_text_of(made, "reset()"))
    message = prompt.to_json(is_opening=True)
    message["anchor"] = environment.anchor()
    return message


def _reply(environment, made, response):
    reply = made if isinstance(made, Reply) else Reply(_text_of(made, "step()"))
    message = reply.to_json(response)
    message["anchor"] = environment.anchor()
    return message


def _response(request):
    response = Response(request["text"])
    response.tool_calls = [ToolCall(**call) for call in request.get("tool_calls", ())]
    response.problem = request.get("problem", "")
    return response


class EnvironmentServer(Server):
    """Keeps the episodes. `make` makes one from the settings."""

    def __init__(self, make):
        super().__init__()
        self.make = make
        self.settings = {}
        self.episodes = {}

    async def hello(self, request):
        if request["protocol"] != PROTOCOL:
            raise ValueError("this file speaks protocol %d, Carnot %s" % (PROTOCOL, request["protocol"]))
        self.settings = request.get("settings", {})
        one = self.make(**self.settings)
        kind = type(one)
        self.at_once = any(inspect.iscoroutinefunction(method) for method in (one.reset, one.step, one.close))
        message = {"protocol": PROTOCOL, "name": kind.__name__, "replay": one.replay, "clone": one.clone,
                   "batch": one.batch, "demonstrate": kind.demonstrate is not Environment.demonstrate,
                   "max_turns": one.max_turns, "max_response_tokens": one.max_response_tokens, "stop": list(one.stop),
                   "think_tag": one.think_tag, "action_tags": list(one.action_tags), "answer_lead": one.answer_lead}
        tokenizer = {"texts": list(one.tokenizer_texts or one.tokenizer_words), "words": list(one.tokenizer_words),
                     "added_tokens": list(one.tokenizer_added_tokens)}
        if any(tokenizer.values()):
            message["tokenizer"] = tokenizer
        return message

    async def reset(self, request):
        environment = await self.value(self.make, **self.settings)
        task = Task(request["task"], request["seed"], request["split"])
        message = _opening(environment, await self.value(environment.reset, task))
        self.episodes[request["episode"]] = environment
        return message

    async def step(self, request):
        environment, response = self.episodes[request["episode"]], _response(request)
        return _reply(environment, await self.value(environment.step, response), response)

    async def clone(self, request):
        self.episodes[request["copy"]] = await self.value(self.episodes[request["episode"]].copy)
        return {}

    async def demonstrate(self, request):
        environment = self.episodes[request["episode"]]
        said = await self.value(environment.demonstrate, request["observation"], request["progress"])
        message = {"text": str(_text_of(said, "demonstrate()"))}
        if getattr(said, "tool_calls", ()):
            message["tool_calls"] = [vars(call) for call in said.tool_calls]
        return message

    async def close(self, request):
        environment = self.episodes.pop(request["episode"], None)
        if environment is not None:
            await self.value(environment.close)

    def answer_batch(self, requests):
        """Steps together, everything else one by one."""
        steps = [request for request in requests if request["op"] == "step" and request["episode"] in self.episodes]
        lines = [finish(self.answer(request)) for request in requests if not any(request is step for step in steps)]
        if not steps:
            return lines
        try:
            environments = [self.episodes[request["episode"]] for request in steps]
            responses = [_response(request) for request in steps]
            replies = environments[0].step_batch(environments, responses)
            if len(replies) != len(steps):
                raise ValueError("step_batch() answered %d of %d responses" % (len(replies), len(steps)))
        except BaseException as error:
            return lines + [self.failure(request, error) for request in steps]
        for request, environment, reply, response in zip(steps, environments, replies, responses):
            try:
                lines.append(self.line(dict(_reply(environment, reply, response), id=request["id"]), request))
            except BaseException as error:
                lines.append(self.failure(request, error))
        return lines


def serve(environment):
    """Answers Carnot until it closes its pipe. `environment`: a class, or a function that makes one episode."""
    answer_forever(EnvironmentServer(environment))


def named(spec):
    """The class or function that "my_file.py:name" names. If it cannot be found, the first call says why."""
    try:
        return load(spec)
    except BaseException as error:
        problem = error

    def refuse(**settings):
        raise problem

    return refuse


if __name__ == "__main__":
    sys.modules["carnot_environment"] = sys.modules["__main__"]  # from which the file derives its class
    serve(named(sys.argv[1]))
