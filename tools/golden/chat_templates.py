#!/usr/bin/env python3
"""Records what published chat templates render, for tests/golden/chat/.

Run from the repository root with:  pip install jinja2==3.1.6
    python3 tools/golden/chat_templates.py NAME=FOLDER ...

NAME is one of CHATS below. FOLDER is the Hugging Face folder of a model with that template: tokenizer_config.json (with
chat_template in it) or chat_template.jinja next to it. The templates themselves are their authors' and are not stored
here; a recording names the model, and the SHA-256 of the template, that it was made with. Of those from phi4_mini on,
three packages of the index hold copies: guidance 0.3.1 (chat.py: Phi-4-mini), trl 1.16.0 (chat_templates: lfm2,
lfm2_v2, qwen3_6) and the source of llama-cpp-python 0.3.36 (vendor/llama.cpp/models/templates: the others but OLMo 3's
and SmolLM3's; the latter's there has no tools).

Jinja is set up as in transformers (utils/chat_template_utils.py). `strftime_now` answers 26 Jul 2024, the day that
the templates of Llama 3.1 and 3.3 fix. In a case marked "rewrites", the template changes what it rendered for the
beginning of the conversation; Carnot never does, and must differ.
"""

import datetime
import hashlib
import json
import pathlib
import sys

from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

OUT = pathlib.Path("tests/golden/chat")

CHATS = {
    "qwen2.5": "Qwen/Qwen2.5-7B-Instruct",
    "qwen3": "Qwen/Qwen3-0.6B",
    "llama2": "meta-llama/Llama-2-7b-chat-hf",
    "llama3": "meta-llama/Meta-Llama-3-8B-Instruct",
    "llama3.1": "meta-llama/Llama-3.2-3B-Instruct",
    "mistral": "mistralai/Mistral-7B-Instruct-v0.3",
    "mistral_nemo": "mistralai/Mistral-Nemo-Instruct-2407",
    "phi4_mini": "microsoft/Phi-4-mini-instruct",
    "granite3.3": "ibm-granite/granite-3.3-2b-instruct",
    "granite4": "ibm-granite/granite-4.0-micro",
    "smollm3": "HuggingFaceTB/SmolLM3-3B",
    "olmo3": "allenai/Olmo-3.1-32B-Instruct",
    "lfm2": "LiquidAI/LFM2-1.2B",
    "lfm2_first": "LiquidAI/LFM2-8B-A1B",
    "ministral3": "mistralai/Ministral-3-14B-Reasoning-2512",
    "mistral_small3.2": "mistralai/Mistral-Small-3.2-24B-Instruct-2506",
    "qwen3_coder": "Qwen/Qwen3-Coder-30B-A3B-Instruct",
    "qwen3.5": "Qwen/Qwen3.5-4B",
    "qwen3.6": "Qwen/Qwen3.6-27B",
}
TOOLS = [
    {"type": "function", "function": {
        "name": "look_up", "description": "Finds a word in the lexicon, if it's there.",
        "parameters": {"type": "object", "properties": {
            "word": {"type": "string", "description": "in d\u00e4nischer Schreibung"},
            "limit": {"type": "integer", "minimum": 1}, "exact": {"type": "boolean", "default": False}},
            "required": ["word"]}}},
    {"type": "function", "function": {
        "name": "wait", "description": "Does nothing.", "parameters": {"type": "object", "properties": {}}}},
]


def call(name, identifier, **arguments):
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


def message(role, content, **more):
    return dict(role=role, content=content, **more)


ASK = message("user", "Which way is north?")
SYSTEM = message("system", "You guide a robot.\nBe brief.")
SYSTEM_BLANKS = message("system", " Answer in one line.\n")
BLANKS = message("user", "\n  Board:\n#__P\n\n 3 moves left, caf\u00e9 \U0001f9ed\u4f60\u597d ")
ANSWER = message("assistant", "Up, I think.")
THOUGHT = message("assistant", "<think>\nThe moss is on this side.\n</think>\n\nUp, I think.")
AGAIN = message("user", "Are you sure?")
CALL = message("assistant", "", tool_calls=[call("look_up", "abcdef123", word="Sm\u00f8rrebr\u00f8d \"x\"", limit=2)])
TWO_CALLS = message("assistant", "", tool_calls=[call("look_up", "abcdef123", word="a", exact=True),
                                                 call("wait", "abcdef456")])
RESULT = message("tool", "{\"found\": [\"bread\", 1.5]}", tool_call_id="abcdef123")
SECOND_RESULT = message("tool", "done\n\"quoted\"", tool_call_id="abcdef456")

WITH_TOOLS = ["qwen2.5", "qwen3", "llama3.1", "mistral", "mistral_nemo"]
# Those whose default system message is long are recorded with another one.
TOLD = ["phi4_mini", "granite3.3", "granite4", "smollm3", "olmo3", "lfm2", "lfm2_first", "ministral3", "qwen3_coder",
        "mistral_small3.2", "qwen3.5", "qwen3.6"]
NEWER = [name for name in TOLD if name != "mistral_small3.2"]
WITH_TOOLS += NEWER
QWEN35 = ["qwen3.5", "qwen3.6"]
SAID_CALL = dict(CALL, content="I look.")
TYPES = message("assistant", "", tool_calls=[call(
    "look_up", "abcdef123", word="it's\n2", limit=-1, exact=False, more=None, part=0.5, all=["a\"b", 1, True],
    by={"key": "\u00e9", "none": None})])

# name, messages, tools offered, chats that have it (None: all), chats whose template rewrites history there
CASES = [
    ("a question", [ASK], False, None, []),
    ("a system message", [SYSTEM, ASK], False, None, []),
    ("blanks and other scripts", [BLANKS], False, None, []),
    ("blanks in a system message", [SYSTEM_BLANKS, BLANKS], False, None, []),
    ("a history", [ASK, ANSWER, AGAIN], False, None, QWEN35),
    ("a history with a system message", [SYSTEM, ASK, ANSWER, AGAIN], False, None,
     ["mistral", "mistral_nemo"] + QWEN35),
    ("a history with thinking", [ASK, THOUGHT, AGAIN], False, ["qwen3"], ["qwen3"]),
    ("functions", [ASK], True, WITH_TOOLS, []),
    ("functions and a system message", [SYSTEM, ASK], True, WITH_TOOLS, []),
    ("a call and its result", [ASK, CALL, RESULT], True, WITH_TOOLS, QWEN35),
    ("two calls and their results", [SYSTEM, ASK, TWO_CALLS, RESULT, SECOND_RESULT], True, ["qwen2.5", "qwen3"], []),
    ("two calls in one message", [ASK, TWO_CALLS, RESULT, SECOND_RESULT], True, ["mistral", "mistral_nemo"], []),
    ("functions in a history", [ASK, ANSWER, AGAIN], True, ["mistral", "mistral_nemo", "qwen3"],
     ["mistral", "mistral_nemo"]),
]
NEWER_CASES = [
    ("a call behind a system message", [SYSTEM, ASK, CALL, RESULT], True, TOLD, QWEN35),
    ("a call beside text", [SYSTEM, ASK, SAID_CALL, RESULT], True, NEWER, QWEN35),
    ("two calls behind a system message", [SYSTEM, ASK, TWO_CALLS, RESULT, SECOND_RESULT], True, TOLD,
     QWEN35),
    ("values of all types", [SYSTEM, ASK, TYPES, RESULT], True, TOLD, QWEN35),
    ("a thought and a call", [SYSTEM, ASK, dict(CALL, content="<think>\nMoss.\n</think>\n\nI look."), RESULT], True,
     QWEN35, []),
]
# name, messages, tools offered, chat, format of Carnot's, what the template is told of thinking
SWITCHED = [
    ("no thinking", [ASK], False, "qwen3", "qwen3_no_think", False),
    ("no thinking", [ASK], False, "qwen3.5", "qwen3.5_no_think", False),
    ("a call without thinking", [SYSTEM, ASK, TWO_CALLS, RESULT, SECOND_RESULT], True, "qwen3.5", "qwen3.5_no_think",
     False),
    ("a call without thinking", [SYSTEM, ASK, TYPES, RESULT], True, "qwen3.6", "qwen3.6_no_think", False),
    ("no thinking", [ASK], False, "smollm3", "template_no_think", False),
    ("a history without thinking", [SYSTEM, ASK, ANSWER, AGAIN], False, "smollm3", "template_no_think", False),
    ("a call without thinking", [ASK, SAID_CALL, RESULT], True, "smollm3", "template_no_think", False),
    ("thinking", [ASK], False, "granite3.3", "template_think", True),
]


class Generation(Extension):
    """{% generation %} ... {% endgeneration %}: its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(["name:endgeneration"], drop_needle=True)).set_lineno(line)


def environment():
    def raise_exception(text):
        raise ValueError(text)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, Generation])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = datetime.datetime(2024, 7, 26).strftime
    return made


def text_of(token):
    return token["content"] if isinstance(token, dict) else token


def read_folder(folder):
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    template = config.get("chat_template")
    if isinstance(template, list):
        template = next(entry["template"] for entry in template if entry["name"] == "default")
    if template is None:
        template = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    return template, {key: text_of(config.get(key)) for key in ("bos_token", "eos_token")}


def listed(calls, after=""):
    return "<|tool_call|>" + json.dumps([one["function"] for one in calls], ensure_ascii=False) + after


def tagged(calls):
    return "\n".join("<tool_call>\n%s\n</tool_call>" % json.dumps(one["function"], ensure_ascii=False) for one in calls)


def pythonic(calls):
    def value(given):
        if not isinstance(given, str):
            return json.dumps(given, ensure_ascii=False) if isinstance(given, (list, dict)) else str(given)
        return "'%s'" % given.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")

    def call_text(name, arguments):
        return "%s(%s)" % (name, ", ".join("%s=%s" % (key, value(arguments[key])) for key in arguments))

    return "<|tool_call_start|>[%s]<|tool_call_end|>" % ", ".join(call_text(**one["function"]) for one in calls)


# Templates that know no calls: what a model says is the content, calls and all.
SAID = {
    "phi4_mini": lambda content, calls: content + listed(calls, "<|/tool_call|>"),
    "granite3.3": lambda content, calls: content + listed(calls),
    "smollm3": lambda content, calls: content + ("\n" if content else "") + tagged(calls),
    "lfm2_first": lambda content, calls: content + pythonic(calls),
}


def said(name, one):
    if name not in SAID or not one.get("tool_calls"):
        return one
    return message(one["role"], SAID[name](one["content"], one["tool_calls"]))


def told(name, messages, tools):
    """What the template is given; earlier thinking stays where it can switch that."""
    given = {"messages": [said(name, one) for one in messages], "tools": tools, "add_generation_prompt": True,
             "preserve_thinking": True}
    if name == "smollm3" and tools:
        given["xml_tools"] = tools
    if name == "phi4_mini" and tools:
        if messages[0]["role"] != "system":
            given["messages"].insert(0, message("system", "You are a helpful assistant with some tools."))
        text = json.dumps([tool["function"] for tool in tools], ensure_ascii=False)
        given["messages"][0] = dict(given["messages"][0], tools=text)
    return given


def record(name, folder):
    template, tokens = read_folder(folder)
    compiled = environment().from_string(template)
    cases = []
    for case, messages, offers, chats, rewriting in CASES + NEWER_CASES:
        if chats is not None and name not in chats or name == "mistral_small3.2" and messages[0] is not SYSTEM:
            continue
        tools = TOOLS if offers else None
        text = compiled.render(**told(name, messages, tools), **tokens)
        cases.append({"name": case, "messages": messages, "tools": tools or [], "rewrites": name in rewriting,
                      "text": text})
    for case, messages, offers, chat, carnots, thinks in SWITCHED:
        if chat != name:
            continue
        tools = TOOLS if offers else None
        text = compiled.render(enable_thinking=thinks, thinking=thinks, **told(name, messages, tools), **tokens)
        cases.append({"name": case, "chat": carnots, "messages": messages, "tools": tools or [], "rewrites": False,
                      "text": text})
    sha256 = hashlib.sha256(template.encode()).hexdigest()
    head = json.dumps({"chat": name, "template_of": CHATS[name], "template_sha256": sha256})
    lines = ",\n ".join(json.dumps(case) for case in cases)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / (name + ".json")).write_text(head[:-1] + ', "cases": [\n ' + lines + "]}\n", encoding="utf-8")
    print(name, len(cases), "cases, template", sha256)


for argument in sys.argv[1:]:
    chat_name, _, path = argument.partition("=")
    record(chat_name, pathlib.Path(path))
