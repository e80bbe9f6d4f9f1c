#!/usr/bin/env python3
"""Records what transformers renders with chat templates that no format of Carnot's matches: tests/golden/chat_templates.

Run from the repository root with:  pip install transformers==5.23.0 jinja2==3.1.6 tokenizers==0.23.3
    python3 tools/golden/foreign_chat_templates.py

The templates next to the recordings were written for the tests, in the style of published ones. Conversations are those
of chat_templates.py. `strftime_now` answers 26 July 2024 here too. A conversation that a template refuses is recorded
with its message.
"""

import datetime
import json
import pathlib

import jinja2
import tokenizers
import transformers
from transformers.utils import chat_template_utils

import chat_templates

FOLDER = pathlib.Path("tests/golden/chat_templates")
NAMES = ["ends", "headings", "lines", "offers", "thoughts", "turns"]
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


class Day(datetime.datetime):
    @classmethod
    def now(cls, zone=None):
        return cls(2024, 7, 26)


def record(name):
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer(tokenizers.models.BPE()), **TOKENS)
    tokenizer.chat_template = (FOLDER / (name + ".jinja")).read_text(encoding="utf-8")
    cases = []
    for case, messages, offers, _, _ in chat_templates.CASES:
        tools = chat_templates.TOOLS if offers else None
        recorded = {"name": case, "messages": messages, "tools": tools or []}
        try:
            recorded["text"] = tokenizer.apply_chat_template(
                messages, tools=tools, add_generation_prompt=True, tokenize=False)
        except jinja2.exceptions.TemplateError as error:
            recorded["refused"] = str(error)
        cases.append(recorded)
    lines = ",\n ".join(json.dumps(one) for one in cases)
    head = json.dumps({"template": name, "transformers": transformers.__version__, "jinja2": jinja2.__version__})
    (FOLDER / (name + ".json")).write_text(head[:-1] + ', "cases": [\n ' + lines + "]}\n", encoding="utf-8")
    print(name, len(cases), "cases,", sum("refused" in one for one in cases), "refused")


chat_template_utils.datetime = Day
for each in NAMES:
    record(each)
