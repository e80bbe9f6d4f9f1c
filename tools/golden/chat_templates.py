#!/usr/bin/env python3
"""Records what published chat templates render, for tests/golden/chat/.

Run from the repository root with:  pip install jinja2==3.1.6
    python3 tools/golden/chat_templates.py NAME=FOLDER ...

NAME is one of CHATS below. FOLDER is the Hugging Face folder of a model with that template: tokenizer_config.json (with
chat_template in it) or chat_template.jinja next to it. The templates themselves are their authors' and are not stored
here; a recording names the model, and the SHA-256 of the template, that it was made with.

Jinja is set up as in transformers (utils/chat_template_utils.py). `strftime_now` answers 26 Jul 2024, the day that
the templates of Llama 3.1 and 3.3 fix. In a case marked "rewrites", the template changes what it rendered for the
beginning of the conversation; Carnot never does, and must differ.
"""

import hashlib
import json
import pathlib
import sys

from jinja2.ext import loopcontrols
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

# name, messages, tools offered, chats that have it (None: all), chats whose template rewrites history there
WITH_TOOLS = ["qwen2.5", "qwen3", "llama3.1", "mistral", "mistral_nemo"]
CASES = [
    ("a question", [ASK], False, None, []),
    ("a system message", [SYSTEM, ASK], False, None, []),
    ("blanks and other scripts", [BLANKS], False, None, []),
    ("blanks in a system message", [SYSTEM_BLANKS, BLANKS], False, None, []),
    ("a history", [ASK, ANSWER, AGAIN], False, None, []),
    ("a history with a system message", [SYSTEM, ASK, ANSWER, AGAIN], False, None, ["mistral", "mistral_nemo"]),
    ("a history with thinking", [ASK, THOUGHT, AGAIN], False, ["qwen3"], ["qwen3"]),
    ("functions", [ASK], True, WITH_TOOLS, []),
    ("functions and a system message", [SYSTEM, ASK], True, WITH_TOOLS, []),
    ("a call and its result", [ASK, CALL, RESULT], True, WITH_TOOLS, []),
    ("two calls and their results", [SYSTEM, ASK, TWO_CALLS, RESULT, SECOND_RESULT], True, ["qwen2.5", "qwen3"], []),
    ("two calls in one message", [ASK, TWO_CALLS, RESULT, SECOND_RESULT], True, ["mistral", "mistral_nemo"], []),
    ("functions in a history", [ASK, ANSWER, AGAIN], True, ["mistral", "mistral_nemo", "qwen3"],
     ["mistral", "mistral_nemo"]),
]


def environment():
    def raise_exception(text):
        raise ValueError(text)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda _: "26 Jul 2024"
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


def record(name, folder):
    template, tokens = read_folder(folder)
    compiled = environment().from_string(template)
    cases = []
    for case, messages, offers, chats, rewriting in CASES:
        if chats is not None and name not in chats:
            continue
        tools = TOOLS if offers else None
        text = compiled.render(messages=messages, tools=tools, add_generation_prompt=True, **tokens)
        cases.append({"name": case, "messages": messages, "tools": tools or [], "rewrites": name in rewriting,
                      "text": text})
    if name == "qwen3":
        text = compiled.render(messages=[ASK], tools=None, add_generation_prompt=True, enable_thinking=False, **tokens)
        cases.append({"name": "no thinking", "chat": "qwen3_no_think", "messages": [ASK], "tools": [],
                      "rewrites": False, "text": text})
    sha256 = hashlib.sha256(template.encode()).hexdigest()
    head = json.dumps({"chat": name, "template_of": CHATS[name], "template_sha256": sha256})
    lines = ",\n ".join(json.dumps(case) for case in cases)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / (name + ".json")).write_text(head[:-1] + ', "cases": [\n ' + lines + "]}\n", encoding="utf-8")
    print(name, len(cases), "cases, template", sha256)


for argument in sys.argv[1:]:
    chat_name, _, path = argument.partition("=")
    record(chat_name, pathlib.Path(path))
