"""A harness in plain Python: it asks the policy for a number, checks it, and rewards it.

    arithmetic_harness.py [MODE]

MODE says what it does: plain (two turns of one conversation, reward as the last line), http (reward by HTTP), tools (a
call, its result, an end), several (two conversations, one after the other), and the faults kill, hang, garbage, status,
nan.
"""
import json
import os
import signal
import sys
import time
import urllib.request

MODE = sys.argv[1] if len(sys.argv) > 1 else "plain"
TASK = json.load(sys.stdin)
assert TASK == json.loads(os.environ["CARNOT_TASK"])
TOOL = {"type": "function", "function": {"name": "look_up", "description": "Looks up.", "parameters": {
    "type": "object", "properties": {"word": {"type": "string"}}}}}


def post(url, value):
    request = urllib.request.Request(url, json.dumps(value).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=100) as answer:
        return json.load(answer)


def ask(messages, **fields):
    answer = post(os.environ["OPENAI_BASE_URL"] + "/chat/completions",
                  dict(model="policy", messages=messages, temperature=0.5, max_tokens=7, **fields))
    return answer["choices"][0]["message"]


def main():
    messages = [{"role": "system", "content": "You add."},
                {"role": "user", "content": f"Task {TASK['index']}: {TASK['task']}"}]
    if MODE == "early":
        return
    first = ask(messages, **({"tools": [TOOL]} if MODE == "tools" else {}))
    messages.append(first)
    if MODE == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if MODE == "hang":
        time.sleep(1000)
    if MODE == "garbage":
        print("no number")
        return
    if MODE == "status":
        print("a reason", file=sys.stderr)
        sys.exit(3)
    if MODE == "nan":
        print("NaN")
        return
    if MODE == "tools" and first.get("tool_calls"):
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": "found it"}
                     for call in first["tool_calls"]]
        ask(messages, tools=[TOOL])
    elif MODE == "several":
        ask([{"role": "user", "content": "Another question"}])
        messages.append({"role": "user", "content": "Back again"})
        ask(messages)
    else:
        messages.append({"role": "user", "content": "Are you sure?"})
        ask(messages)
    if MODE == "http":
        post(os.environ["CARNOT_REWARD_URL"], {"reward": 0.25, "success": False, "measures": {"asked": 2}})
        print("this is not a reward, and it does not matter")
    else:
        print("some output")
        print(json.dumps({"reward": 1.5}))


main()
