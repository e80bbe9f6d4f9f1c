"""Environments for Carnot in Python: derive from Environment, call serve(). One file, no dependencies, Python 3.8 on.

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

Carnot starts the script and talks to it in JSON over standard input and output (docs/process_environments.md). What the
script prints goes to standard error, into Carnot's log. An exception ends the episode as an infrastructure failure,
which never becomes a reward; the script goes on with the next one.
"""

import copy
import functools
import importlib.util
import inspect
import json
import os
import re
import sys
import threading
import traceback

__all__ = ["Environment", "Prompt", "Reply", "Response", "Task", "Tool", "ToolCall", "load", "serve"]

PROTOCOL = 1


class Task:
    """What reset() is asked for. Equal tasks must be equal: draw only from `seed`, or look up row `index`."""

    def __init__(self, index, seed, split):
        self.index = index  # 0, 1, 2, ...
        self.seed = seed  # below 2**53, another for each task
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
        """The text between the first <name> and the </name> after it, without white space around; None without one."""
        found = re.search("<%s>(.*?)</%s>" % (re.escape(name), re.escape(name)), self, re.DOTALL)
        return found.group(1).strip() if found else None


class Tool:
    """A tool that a prompt offers. `parameters`: a JSON schema."""

    def __init__(self, name, description="", parameters=None):
        self.name, self.description = name, description
        self.parameters = parameters or {"type": "object", "properties": {}}


class Prompt:
    """How an episode begins, or how it continues with a whole new context. A str does where only `user` is needed."""

    def __init__(self, user="", system="", history=(), assistant_prefix="", tools=(), ground_truth=(), info=None):
        self.user, self.system, self.assistant_prefix = user, system, assistant_prefix
        self.history = list(history)  # {"role": ..., "content": ...} each, between the system message and `user`
        self.tools = list(tools)
        self.ground_truth = list(ground_truth)  # answers that count as right
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
    """The answer to a response. A str does where the episode continues with it as the next user message."""

    def __init__(self, text="", reward=0.0, done=False, success=False, penalty=0.0, valid_action=True, inline=False,
                 results=None, prompt=None, outcome="finished", tool="", status="", measures=None, answer=None):
        self.text = text
        self.reward = reward  # of this turn
        self.done = done
        self.success = success
        self.penalty = penalty  # at most 0: part of what is learnt from, never of the reported score
        self.valid_action = valid_action
        self.inline = inline  # the text continues the assistant's message, as a search result does
        self.results = results  # tool results instead of a user message: a text for each call, in order
        self.prompt = prompt  # a Prompt that replaces the whole context
        self.outcome = outcome  # how it ended: finished, out_of_turns, out_of_tokens, unparsable, tool_failed
        self.tool = tool  # the tool that the turn called, and the status of its result, for the metrics
        self.status = status
        self.measures = measures  # numbers of the finished episode, for the metrics
        self.answer = answer  # the final answer as a text, the same for all that are equal

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

    `reset`, `step` and `close` may be coroutines (`async def`). Then all episodes run at once, in one event loop that
    lives as long as the process, and an episode that waits holds up no other."""

    max_turns = 1
    max_response_tokens = 400
    stop = ()  # texts that end a response early and stay in it: "</search>"
    think_tag = "think"
    action_tags = ("answer",)
    replay = False  # True: the same task and responses get the same replies, so that rollouts may branch
    clone = False  # True: copy() works, which is quicker
    answer_lead = ""  # what a response says right before its final answer; information gain needs it
    tokenizer_words = ()  # for a small model with a tokenizer of its own: words that are single tokens,
    tokenizer_added_tokens = ()  # tags that are,
    tokenizer_texts = ()  # and texts to train the rest from; without any, the rest is bytes

    def reset(self, task):
        """The first prompt of the task: a str or a Prompt."""
        raise NotImplementedError

    def step(self, response):
        """Answers a response: a str or a Reply."""
        raise NotImplementedError

    def step_batch(self, environments, responses):
        """Answers one response of each of `environments` at once; override it where that is quicker.

        `self` is one of them. With it, set `batch = True`."""
        return [environment.step(response) for environment, response in zip(environments, responses)]

    batch = False

    def copy(self):
        """An independent episode at the same state; with `clone = True`."""
        return copy.deepcopy(self)

    def anchor(self):
        """A key of the present state, equal for equal states of one task; "" where there is none."""
        return ""

    def demonstrate(self, observation, progress):
        """The next response of an expert, for SFT. `progress`: from 0 to 1, how far it is."""
        raise NotImplementedError

    def close(self):
        """The episode is over, or nobody needs the rest of it."""


@functools.lru_cache(maxsize=None)
def _event_loop():
    """The event loop of the process, in a thread of its own from the first use on."""
    import asyncio  # which takes its time

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


def _start(coroutine):
    """Runs it in the event loop: a future."""
    import asyncio

    return asyncio.run_coroutine_threadsafe(coroutine, _event_loop())


def _finish(coroutine):
    """What a coroutine returns that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("%s waits, and nothing runs it" % coroutine)


async def _in_a_thread(function):
    """What it returns, while the event loop goes on."""
    loop = _event_loop()
    ended = loop.create_future()

    def settle(set_outcome, outcome):
        if not ended.cancelled():
            set_outcome(outcome)

    def work():
        try:
            outcome = ended.set_result, function()
        except BaseException as error:
            is_plain = isinstance(error, Exception) and not isinstance(error, StopIteration)  # others end the loop
            outcome = ended.set_exception, error if is_plain else RuntimeError(repr(error))
        loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=work, daemon=True).start()
    return await ended


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


class Server:
    """Answers requests by the coroutine that `op` names; carnot_reward.py and carnot_tools.py derive from it."""

    def __init__(self, make):
        self.make = make
        self.settings = {}
        self.episodes = {}
        self.at_once = False  # each request is answered beside the others

    def is_for_the_loop(self, request):
        """Whether the event loop answers it, where requests are answered at once; otherwise a thread of its own."""
        return True

    async def value(self, function, *arguments, **named):
        """What a function or coroutine of the user's returns."""
        if self.at_once and not inspect.iscoroutinefunction(function):
            made = await _in_a_thread(functools.partial(function, *arguments, **named))
        else:
            made = function(*arguments, **named)
        if not inspect.iscoroutine(made):
            return made
        return await made if self.at_once else _start(made).result()

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

    async def answer(self, request):
        """The line that answers a request; None where there is none to give."""
        try:
            message = await getattr(self, request["op"])(request)
            if message is None:
                return None
            return self.line(dict(message, id=request["id"]), request)
        except Exception as error:
            return self.failure(request, error)

    def line(self, message, request):
        try:
            return json.dumps(message, ensure_ascii=False, allow_nan=False)
        except Exception as error:
            return self.failure(request, error)

    def failure(self, request, error):
        traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)
        text = "%s: %s" % (type(error).__name__, error)
        return json.dumps({"id": request.get("id", -1), "error": text})

    def answer_batch(self, requests):
        """Steps together, everything else one by one."""
        steps = [request for request in requests if request["op"] == "step" and request["episode"] in self.episodes]
        lines = [_finish(self.answer(request)) for request in requests if not any(request is step for step in steps)]
        if not steps:
            return lines
        try:
            environments = [self.episodes[request["episode"]] for request in steps]
            responses = [_response(request) for request in steps]
            replies = environments[0].step_batch(environments, responses)
            if len(replies) != len(steps):
                raise ValueError("step_batch() answered %d of %d responses" % (len(replies), len(steps)))
        except Exception as error:
            return lines + [self.failure(request, error) for request in steps]
        for request, environment, reply, response in zip(steps, environments, replies, responses):
            try:
                lines.append(self.line(dict(_reply(environment, reply, response), id=request["id"]), request))
            except Exception as error:
                lines.append(self.failure(request, error))
        return lines


@functools.lru_cache(maxsize=None)
def load(spec):
    """The function or class that "my_file.py:name" or "my_module:name" names. A file finds the modules next to it, a
    module is also looked for where the program was started."""
    path, _, name = spec.rpartition(":")
    if not path or not name:
        raise ValueError("expected FILE:FUNCTION, got %r" % spec)
    if path.endswith(".py"):
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        module_spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
        module = importlib.util.module_from_spec(module_spec)
        module_spec.loader.exec_module(module)
    else:
        sys.path.append(os.getcwd())
        module = importlib.import_module(path)
    if not callable(getattr(module, name, None)):
        raise ValueError("%s has no function %s" % (path, name))
    return getattr(module, name)


def serve(environment):
    """Answers Carnot until it closes standard input. `environment`: a class, or a function that makes one episode."""
    answer_forever(Server(environment))


def answer_forever(server):
    # What the environment prints must not get between the answers.
    answers = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    writing = threading.Lock()

    def write(lines):
        written = "".join(line + "\n" for line in lines if line is not None).encode("utf-8", "replace")
        with writing:
            while written:
                written = written[os.write(answers, written):]

    rest = b""
    while True:
        data = os.read(0, 1 << 20)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        out = []
        for line in lines:
            request = json.loads(line)
            if server.at_once:
                for one in request.get("calls", [request]):
                    if server.is_for_the_loop(one):
                        _start(server.answer(one)).add_done_callback(lambda answered: write([answered.result()]))
                    else:
                        threading.Thread(target=lambda one=one: write([_finish(server.answer(one))]), daemon=True).start()
            else:
                out += server.answer_batch(request["calls"]) if "calls" in request else [_finish(server.answer(request))]
        write(out)
