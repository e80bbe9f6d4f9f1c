"""How Python files answer Carnot: requests and answers in JSON, one per line (docs/process_environments.md).

carnot_environment.py, carnot_reward.py, carnot_tools.py and carnot_chat_template.py derive their servers from Server;
carnot_tracker.py reads by take_pipes(). Nothing here is for users.
"""

import functools
import importlib.util
import inspect
import json
import os
import sys
import sysconfig
import threading
import traceback

PROTOCOL = 1


@functools.lru_cache(maxsize=None)
def take_pipes():
    """The descriptors that Carnot writes to and reads from. Children inherit neither. From now on standard input is
    empty, and standard output goes to standard error."""
    pipes = os.dup(0), os.dup(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return pipes


# Carnot sets this variable. Done at once, because the script may start programs next.
if os.environ.pop("CARNOT_PROTOCOL", "") != "":
    take_pipes()


# ---- the user's functions and coroutines

@functools.lru_cache(maxsize=None)
def _event_loop():
    """The event loop of the process, in a separate thread from the first use on."""
    import asyncio  # a slow import

    loop = asyncio.new_event_loop()

    def run():
        while True:
            try:
                loop.run_forever()
            except BaseException:  # sys.exit() in a task that the user's code started
                traceback.print_exc()

    threading.Thread(target=run, daemon=True).start()
    return loop


def start(coroutine):
    """Runs it in the event loop: a future."""
    import asyncio

    return asyncio.run_coroutine_threadsafe(coroutine, _event_loop())


def finish(coroutine):
    """The result of a coroutine that awaits nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("%s waits, and nothing runs it" % coroutine)


async def _in_a_thread(function):
    """Its result; the event loop keeps running meanwhile."""
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


@functools.lru_cache(maxsize=None)
def load(spec):
    """The function or class that "my_file.py:name" or "my_module:name" names. A file finds the modules next to it; a
    module is also looked for in the folder where the program was started."""
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


# ---- what went wrong

_HERE = os.path.dirname(os.path.abspath(__file__))
_LIBRARIES = tuple({path + os.sep for name, path in sysconfig.get_paths().items() if "lib" in name})


def _is_own(frame):
    folder, name = os.path.split(os.path.abspath(frame.filename))
    return folder == _HERE and name.startswith("carnot_") or frame.filename.startswith("<frozen ")


class Failures:
    """Messages for exceptions. A traceback is printed once, and its count at 10, 100, 1000 times."""

    MOST = 1000  # remembered tracebacks

    def __init__(self):
        self.counts = {}

    def text_of(self, error):
        """What is reported to Carnot: "ValueError: not five (my_reward.py, line 12)"."""
        shown = traceback.TracebackException(type(error), error, error.__traceback__)
        frames = [frame for frame in shown.stack if not _is_own(frame)]
        users = [frame for frame in frames if not frame.filename.startswith(_LIBRARIES)]
        text = "%s: %s" % (type(error).__name__, error)
        if users:
            self.print_once(shown, text)
            text += " (%s, line %s)" % (os.path.basename(users[-1].filename), users[-1].lineno)
        return text

    def print_once(self, shown, text):
        part = shown
        while part is not None:
            part.stack = traceback.StackSummary.from_list([frame for frame in part.stack if not _is_own(frame)])
            part = part.__cause__ or part.__context__
        lines = "".join(shown.format())
        count = self.counts[lines] = self.counts.get(lines, 0) + 1
        if count == 1 and len(self.counts) <= self.MOST:
            sys.stderr.write(lines)
        elif count in (10, 100, 1000, 10000):
            sys.stderr.write("%s, %d times so far\n" % (text, count))


# ---- requests and answers

class Server:
    """Answers requests with the coroutine that `op` names."""

    def __init__(self):
        self.at_once = False  # requests are answered concurrently
        self.failures = Failures()

    def is_for_the_loop(self, request):
        """If requests are answered concurrently: whether the event loop answers this one; otherwise a separate thread
        does."""
        return True

    async def value(self, function, *arguments, **named):
        """The result of one of the user's functions or coroutines."""
        if self.at_once and not inspect.iscoroutinefunction(function):
            made = await _in_a_thread(functools.partial(function, *arguments, **named))
        else:
            made = function(*arguments, **named)
        if not inspect.iscoroutine(made):
            return made
        return await made if self.at_once else start(made).result()

    async def answer(self, request):
        """The line that answers a request; None if it needs no answer."""
        try:
            message = await getattr(self, request["op"])(request)
            if message is None:
                return None
            return self.line(dict(message, id=request["id"]), request)
        except GeneratorExit:
            raise
        except BaseException as error:  # sys.exit() and cancelled tasks are answers, too
            return self.failure(request, error)

    def answer_batch(self, requests):
        """The lines that answer requests that came together."""
        return [finish(self.answer(request)) for request in requests]

    def line(self, message, request):
        try:
            return json.dumps(message, ensure_ascii=False, allow_nan=False)
        except Exception as error:
            return self.failure(request, error)

    def failure(self, request, error):
        text = self.failures.text_of(error)
        return json.dumps({"id": request["id"], "error": text}) if "id" in request else None


def answer_forever(server):
    """Answers Carnot until it closes its pipe."""
    requests, answers = take_pipes()
    writing = threading.Lock()

    def write(lines):
        written = "".join(line + "\n" for line in lines if line is not None).encode("utf-8", "replace")
        with writing:
            while written:
                written = written[os.write(answers, written):]

    def answer_at_once(request):
        if server.is_for_the_loop(request):
            start(server.answer(request)).add_done_callback(lambda answered: write([answered.result()]))
        else:
            threading.Thread(target=lambda: write([finish(server.answer(request))]), daemon=True).start()

    rest = b""
    while True:
        data = os.read(requests, 1 << 20)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        out = []
        for line in lines:
            request = json.loads(line)
            calls = request.get("calls", [request])
            if server.at_once:
                for one in calls:
                    answer_at_once(one)
            else:
                out += server.answer_batch(calls) if "calls" in request else [finish(server.answer(request))]
        write(out)
