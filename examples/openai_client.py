"""A model that `carnot serve` serves, through the openai package: chats, streams, tools, token ids, log-probabilities.

    pip install openai
    carnot serve --model DIR &
    python3 examples/openai_client.py http://127.0.0.1:8000/v1

Checks what it gets, so that it is a test as well.
"""
import json
import sys

from openai import BadRequestError, OpenAI

client = OpenAI(base_url=sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000/v1", api_key="none",
                max_retries=0)
model = client.models.list().data[0].id
messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where is it ?"}]
settings = dict(model=model, temperature=0.8, seed=3, max_tokens=24)

# A chat, whole and as a stream: the same text.
chat = client.chat.completions.create(messages=messages, n=2, **settings)
texts = [choice.message.content for choice in chat.choices]
streamed = ["", ""]
usage = None
for chunk in client.chat.completions.create(messages=messages, n=2, stream=True,
                                            stream_options={"include_usage": True}, **settings):
    usage = chunk.usage or usage
    for choice in chunk.choices:
        streamed[choice.index] += choice.delta.content or ""
assert streamed == texts, (streamed, texts)
assert usage == chat.usage, (usage, chat.usage)
print("chat:", texts[0])

# Token ids and log-probabilities; the ids as a prompt give the same continuation.
ids = client.chat.completions.create(messages=messages, logprobs=True, top_logprobs=3,
                                     extra_body={"return_token_ids": True}, **settings)
choice = ids.choices[0]
assert choice.message.content == texts[0]
assert len(choice.token_ids) == len(choice.logprobs.content) == ids.usage.completion_tokens
assert all(token.logprob <= 0 and len(token.top_logprobs) == 3 for token in choice.logprobs.content)
text = client.completions.create(prompt=ids.prompt_token_ids, logprobs=1, extra_body={"return_token_ids": True},
                                 **settings)
common = min(len(text.choices[0].token_ids), len(choice.token_ids))
assert text.choices[0].token_ids[:common] == choice.token_ids[:common]
assert text.choices[0].logprobs.token_logprobs[:common] == [t.logprob for t in choice.logprobs.content][:common]

# Several prompts at once.
several = client.completions.create(prompt=["Who ?", "Where ?"], n=2, **settings)
assert [choice.index for choice in several.choices] == [0, 1, 2, 3]

# Tools: offered, called if the model wants to, and their results sent back.
tools = [{"type": "function", "function": {"name": "look_up", "description": "Looks a word up.",
          "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}}}]
answer = client.chat.completions.create(messages=messages, tools=tools, **settings).choices[0].message
print("calls:", [call.function.name for call in answer.tool_calls or []])
call = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": json.dumps({"word": "it"})}}
after = client.chat.completions.create(tools=tools, messages=messages + [
    {"role": "assistant", "content": None, "tool_calls": [call]},
    {"role": "tool", "tool_call_id": "call_1", "content": "here"}], **settings)
assert after.usage.prompt_tokens > chat.usage.prompt_tokens

# Unsupported parameters are reported.
try:
    client.chat.completions.create(messages=messages, presence_penalty=1, logit_bias={"5": 1}, **settings)
    raise AssertionError("penalties were accepted")
except BadRequestError as error:
    assert "presence_penalty" in error.message and "logit_bias" in error.message, error.message
print("all is well")
