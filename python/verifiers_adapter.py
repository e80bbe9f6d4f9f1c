"""Environments of verifiers (Prime Intellect) for Carnot. Tried with verifiers 0.4.0 and 0.1.14.

    env:
      name: process
      command: [python3, python/verifiers_adapter.py]
      settings: [id=my-taskset, max_turns=10]

Settings:
    id         up to verifiers 0.3: what load_environment() takes, or "my_file.py:function" that returns an environment;
               from 0.4 on: the id of a taskset, or of a module that is one
    max_turns  of an episode; default: the environment's own limit, or 10
    success    the reward from which an episode is a success; default: 1
    harness    from 0.4 on: the program that plays the conversation; default: null, a chat with the task's tools
    replay     true if a task and the same responses always lead to the same replies
All other settings go to load_environment(), or are the taskset's configuration.

verifiers drives its rollout itself and asks a server for each completion. This file is that server: a request is the
next turn of the episode, the policy's response is the completion. So every verifiers environment works whose reward
needs only one policy and one rollout. Its reward is that of the last turn. Task i is row i; without rows for
evaluation, the last tenth is for validation.
"""
import asyncio
import functools
import itertools
import json
import os
import re
import secrets
import sys

import verifiers

from carnot_environment import Environment, Prompt, Reply, Tool, load, serve

KEY = "CARNOT_VERIFIERS_KEY"  # an environment variable, because verifiers needs the name of one
POLICY_ERRORS = ("ToolParseError", "ToolCallError")  # of the policy, if the environment stops at them
MOST_ROWS = 10000  # of a taskset without an end


def first_for_validation(count):
    """The first of the last tenth of `count` rows."""
    if count < 2:
        raise ValueError("the environment has %d rows; expected at least 2" % count)
    return count - max(1, count // 10)


class LoadedEnvironment:
    """verifiers up to 0.3: load_environment() makes a SingleTurnEnv, ToolEnv, MultiTurnEnv, ..."""

    def __init__(self, id, max_turns, harness, arguments):
        self.world = load(id)(**arguments) if ":" in id else verifiers.load_environment(id, **arguments)
        if getattr(self.world, "requires_group_rollouts", False):
            raise ValueError("%s has rewards that compare a group's rollouts; here each is scored alone" % id)
        rows, validation = self.world.get_dataset(), self.world.build_eval_dataset()
        if validation is None:
            cut = first_for_validation(len(rows))
            rows, validation = rows.select(range(cut)), rows.select(range(cut, len(rows)))
        self.rows = {"train": rows, "validation": validation}
        own = getattr(self.world, "max_turns", 1)
        self.max_turns = 1 if own == 1 else max_turns or (own if own > 0 else 10)
        self.world.max_turns = self.max_turns

    async def start(self, url):
        self.client = verifiers.ClientConfig(api_base_url=url, api_key_var=KEY)

    async def play(self, row, name):
        output = await self.world.run_rollout(row, self.client, name, {})
        error = output.get("error")
        if error and error["error"] not in POLICY_ERRORS:
            raise RuntimeError(error["error_chain_str"])
        return output["reward"], output["metrics"], not error

    def ground_truth(self, row):
        return [row["answer"]] if row.get("answer") else []


class LoadedTaskset:
    """verifiers from 0.4 on (`verifiers.v1`): a taskset, and a harness that plays it in a subprocess."""

    def __init__(self, id, max_turns, harness, arguments):
        import verifiers.v1 as v1

        agent = {"harness": {"id": harness}, "runtime": {"type": "subprocess"}, "max_turns": max_turns or 10}
        fields = v1.env_config_type(id).model_fields
        agents = [name for name, field in fields.items() if isinstance(field.default, v1.AgentConfig)]
        if len(agents) != 1:
            raise ValueError("%s has the agents %s; expected a single one" % (id, ", ".join(agents)))
        self.v1, self.max_turns = v1, agent["max_turns"]
        self.world = v1.load_environment(v1.resolve_env_config({"taskset": dict(arguments, id=id), agents[0]: agent}))
        tasks = list(itertools.islice(self.world.taskset, MOST_ROWS))
        cut = first_for_validation(len(tasks))
        self.rows = {"train": tasks[:cut], "validation": tasks[cut:]}

    async def start(self, url):
        self.client = self.v1.EvalClientConfig(base_url=url, api_key_var=KEY)
        await self.world.serving().__aenter__()

    async def play(self, task, name):
        episode = await self.world.run_episode(task, self.v1.ModelContext(model=name, client=self.client))
        if not episode.ok:
            errors = list(episode.errors) + [error for trace in episode.traces for error in trace.errors]
            raise RuntimeError("; ".join("%s: %s" % (error.type, error.message) for error in errors))
        trace = episode.traces[0]
        return trace.reward, trace.metrics, True

    def ground_truth(self, task):
        answer = getattr(task.data, "answer", None)
        return [answer] if isinstance(answer, str) and answer else []


class CompletionServer:
    """Chat completions over HTTP, on the loopback interface. The model's name says which episode is asking."""

    def __init__(self):
        self.episodes = {}

    async def start(self):
        server = await asyncio.start_server(self.answer, "127.0.0.1", 0)
        return "http://127.0.0.1:%d/v1" % server.sockets[0].getsockname()[1]

    async def answer(self, reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
            body = json.loads(await reader.readexactly(int(length.group(1))))
            call = (body, asyncio.get_running_loop().create_future())
            self.episodes[body["model"]].calls.put_nowait(call)
            kind, content = completion(body, await call[1])
            writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n%s"
                         % (kind, len(content), content))
            await writer.drain()
        finally:
            writer.close()


def completion(body, message):
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    answer = {"id": "carnot", "created": 0, "model": body["model"],
              "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}}
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return b"application/json", json.dumps(dict(answer, object="chat.completion", choices=[choice])).encode()
    calls = [dict(call, index=i) for i, call in enumerate(message.get("tool_calls", ()))]
    delta = dict(message, tool_calls=calls) if calls else message
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    chunk = json.dumps(dict(answer, object="chat.completion.chunk", choices=[choice]))
    return b"text/event-stream", ("data: %s\n\ndata: [DONE]\n\n" % chunk).encode()


def text_of(content):
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


def message_from(said):
    """A message of the OpenAI API in Carnot's form."""
    message = {"role": said["role"], "content": text_of(said.get("content"))}
    if said.get("tool_calls"):
        message["tool_calls"] = [{"id": call["id"], "name": call["function"]["name"],
                                  "arguments": json.loads(call["function"]["arguments"] or "{}")}
                                 for call in said["tool_calls"]]
    if said.get("tool_call_id"):
        message["tool_call_id"] = said["tool_call_id"]
    return message


def message_to(response):
    """A response of the policy in the OpenAI API's form. verifiers treats an empty one as a failure of the server."""
    message = {"role": "assistant", "content": str(response) or " "}
    if response.tool_calls:
        message["content"] = re.sub(r"<tool_call>.*?</tool_call>", "", response, flags=re.DOTALL).strip()
        message["tool_calls"] = [{"id": call.id or "call_%d" % i, "type": "function",
                                  "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
                                 for i, call in enumerate(response.tool_calls)]
    return message


def prompt_from(body):
    messages = [message_from(said) for said in body["messages"]]
    system = messages.pop(0)["content"] if messages[0]["role"] == "system" else ""
    user = messages.pop()["content"] if messages[-1]["role"] == "user" else ""
    functions = [tool["function"] for tool in body.get("tools") or ()]
    tools = [Tool(one["name"], one.get("description") or "", one.get("parameters")) for one in functions]
    return Prompt(user, system, messages, tools=tools)


def continuation(before, body):
    """The reply with what is new after the messages `before`; a whole new context if they were changed."""
    messages = [message_from(said) for said in body["messages"]]
    new = messages[len(before):]
    roles = {message["role"] for message in new}
    if messages[:len(before)] == before and roles == {"user"}:
        return Reply("\n\n".join(message["content"] for message in new))
    if messages[:len(before)] == before and roles == {"tool"}:
        texts = {message["tool_call_id"]: message["content"] for message in new}
        asked = [call["id"] for call in before[-1].get("tool_calls", ())]
        if sorted(asked) == sorted(texts):
            return Reply(results=[texts[id] for id in asked])
    return Reply(prompt=prompt_from(body))


@functools.lru_cache(maxsize=None)
def loaded(settings):
    arguments = json.loads(settings)
    os.environ.setdefault(KEY, "none")
    sys.path.append(os.getcwd())
    kind = LoadedEnvironment if hasattr(verifiers, "load_environment") else LoadedTaskset
    return kind(arguments.pop("id"), arguments.pop("max_turns", 0), arguments.pop("harness", "null"), arguments)


class Verifiers(Environment):
    server, starting = CompletionServer(), None

    def __init__(self, success=1.0, replay=False, **settings):
        self.loaded = loaded(json.dumps(settings, sort_keys=True))
        self.max_turns = self.loaded.max_turns
        self.success, self.replay = success, replay
        self.name, self.calls, self.rollout = secrets.token_hex(16), None, None

    async def start(self):
        await self.loaded.start(await self.server.start())

    async def reset(self, task):
        if Verifiers.starting is None:
            Verifiers.starting = asyncio.ensure_future(self.start())
        await asyncio.shield(Verifiers.starting)
        self.calls = asyncio.Queue()
        self.server.episodes[self.name] = self
        rows = self.loaded.rows[task.split]
        row = rows[task.index % len(rows)]
        self.rollout = asyncio.ensure_future(self.loaded.play(row, self.name))
        self.rollout.add_done_callback(lambda _: self.calls.put_nowait(None))
        if not await self.next_call():
            self.rollout.result()
            raise RuntimeError("the rollout ended before it asked for a completion")
        prompt = prompt_from(self.body)
        prompt.ground_truth = self.loaded.ground_truth(row)
        return prompt

    async def step(self, response):
        said = message_to(response)
        before = [message_from(one) for one in self.body["messages"] + [said]]
        self.answer.set_result(said)
        if await self.next_call():
            return continuation(before, self.body)
        reward, metrics, valid = self.rollout.result()
        numbers = {key: value for key, value in metrics.items() if isinstance(value, (int, float))}
        return Reply(reward=reward, done=True, success=reward >= self.success, valid_action=valid, measures=numbers)

    async def next_call(self):
        call = await self.calls.get()
        self.body, self.answer = call or (None, None)
        return call is not None

    async def close(self):
        self.server.episodes.pop(self.name, None)
        if self.rollout is not None:
            self.rollout.cancel()


if __name__ == "__main__":
    serve(Verifiers)
    os._exit(0)  # verifiers 0.1 has threads that never end
