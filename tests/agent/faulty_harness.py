"""A harness that fails in every way that a harness can; the task's number says how.

    faulty_harness.py failing|hanging

Its first message gives the task's seed, how the episode must end, and the fault: "4711 lost kill". `right` is an
episode with the reward of reward(), `lost` one without any, `either` one of the two.
"""
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

HANGING = ["hang", "hang before asking", "hang with half a call", "close output and hang", "hang after a refusal"]
LOST = ["kill", "exit", "exit with an open call", "exit before asking", "kill before asking", "reward before asking",
        "no reward", "garbage", "nan", "infinite", "too large", "text", "list", "true", "no member", "unknown member",
        "measure", "reward and status", "more output", "very long line", "not utf-8"]
RIGHT = ["none", "slow", "no line break", "garbage call", "unknown path", "half a call", "another's episode", "no HTTP",
         "refused reward", "posted", "posted twice", "posted and hang", "posted and kill", "posted and status",
         "much output", "child left", "child that talks", "idle connections", "two calls at once"]
EITHER = ["call that is left", "call after the reward"]  # by what happens first
FAULTS = {"hanging": [("lost", fault) for fault in HANGING],
          "failing": [("lost", fault) for fault in LOST] + [("right", fault) for fault in RIGHT] +
                     [("either", fault) for fault in EITHER]}
TASK = json.load(sys.stdin)
EXPECTED, FAULT = FAULTS[sys.argv[1]][TASK["index"] % len(FAULTS[sys.argv[1]])]
HOST, PORT = os.environ["OPENAI_BASE_URL"].split("/")[2].split(":")
EPISODE = "/" + os.environ["OPENAI_BASE_URL"].split("/", 3)[3]
REWARD = "/" + os.environ["CARNOT_REWARD_URL"].split("/", 3)[3]
heard = []


def connection():
    return socket.create_connection((HOST, int(PORT)))


def request(path, body):
    return ("POST %s HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\nContent-Type: application/json\r\n"
            "Content-Length: %d\r\n\r\n%s" % (path, HOST, PORT, len(body), body)).encode()


def post(path, body):
    """The status and the body of the answer."""
    with connection() as to:
        to.sendall(request(path, body))
        said = b""
        while piece := to.recv(65536):
            said += piece
    head, _, answer = said.partition(b"\r\n\r\n")
    return int(head.split()[1]), answer


def call(content):
    return json.dumps({"model": "policy", "messages": [{"role": "user", "content": content}]})


def ask(content):
    status, answer = post(EPISODE + "/chat/completions", call(content))
    assert status == 200, (status, answer)
    heard.append(json.loads(answer)["choices"][0]["message"]["content"])


def reward():
    """The test computes the same."""
    return {"reward": TASK["seed"] % 97 + sum(map(len, heard)), "measures": {"heard": sum(map(len, heard))}}


def refused(path, body, *statuses):
    status, answer = post(path, body)
    assert status in statuses, (status, answer)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def before_asking():
    if FAULT == "exit before asking":
        sys.exit(0)
    if FAULT == "kill before asking":
        die()
    if FAULT == "reward before asking":
        print(1000)
        sys.exit(0)
    if FAULT == "hang before asking":
        time.sleep(1000)


def between():
    """After the first call."""
    if FAULT == "kill":
        die()
    if FAULT == "exit":
        print(1000, flush=True)
        os._exit(3)
    if FAULT == "hang":
        time.sleep(1000)
    if FAULT == "close output and hang":
        os.close(1)
        os.close(2)
        time.sleep(1000)
    if FAULT == "slow":
        time.sleep(0.05)
    if FAULT in ("garbage call", "hang after a refusal"):
        for body in ("{", "[]", '{"messages": 5}', '{"messages": [{"role": "user", "content": "a"}], "n": 3}'):
            refused(EPISODE + "/chat/completions", body, 400)
    if FAULT == "hang after a refusal":
        time.sleep(1000)
    if FAULT == "unknown path":
        refused(EPISODE + "/embeddings", "{}", 404)
    if FAULT == "another's episode":
        refused("/episode/12345/v1/chat/completions", call("hello"), 404, 410)
        refused("/episode/12345/reward", "1000", 404, 410)
    if FAULT in ("half a call", "hang with half a call"):
        with connection() as to:
            to.sendall(request(EPISODE + "/chat/completions", call("half"))[:-5])
            if FAULT == "hang with half a call":
                time.sleep(1000)
    if FAULT == "no HTTP":
        with connection() as to:
            to.sendall(b"\x00\xff reward 1000\r\n\r\n")
    if FAULT in ("call that is left", "exit with an open call"):
        with connection() as to:
            to.sendall(request(EPISODE + "/chat/completions", call("the harness does not wait for this")))
            if FAULT == "exit with an open call":
                os._exit(0)
    if FAULT == "refused reward":
        for body in ('{"reward": "much"}', "NaN", '{"reward": 1e999}', "", '{"success": true}'):
            refused(REWARD, body, 400)
    if FAULT == "much output":
        for stream in (sys.stdout, sys.stderr):
            stream.write("a line of output\n" * 20000)
            stream.flush()
    if FAULT == "child left":
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
    if FAULT == "child that talks":
        subprocess.run(["sh", "-c", "cat; echo 1000"], check=True)  # if the input never ends, it hangs
    if FAULT == "idle connections":
        globals()["idle"] = [connection() for _ in range(10)]


def at_the_end():
    said = json.dumps(reward())
    if FAULT == "no line break":
        sys.stdout.write(said)
        return
    wrong = {"no reward": "", "garbage": "the reward is 1000", "nan": "NaN", "infinite": '{"reward": Infinity}',
             "too large": "1e999", "text": '"1000"', "list": "[1000]", "true": '{"reward": true}',
             "no member": '{"success": true}', "unknown member": '{"reward": 1000, "rewards": 1}',
             "measure": '{"reward": 1000, "measures": {"a": "b"}}', "more output": said + "\nthat was it",
             "very long line": "1" * 3000000}
    if FAULT == "not utf-8":
        sys.stdout.buffer.write(b'{"reward": 1000, "measures": {"\xff\xfe": 1}}\n')
        return
    if FAULT.startswith("posted") or FAULT == "call after the reward":
        assert post(REWARD, said)[0] == 200
        if FAULT == "posted twice":
            refused(REWARD, "1000", 409, 410, 404)
        if FAULT == "posted and hang":
            time.sleep(1000)
        if FAULT == "posted and kill":
            die()
        if FAULT == "posted and status":
            sys.exit(1)
        if FAULT == "call after the reward":
            refused(EPISODE + "/chat/completions", call("one more"), 200, 409, 410)
        print(1000)
        return
    print(wrong.get(FAULT, said))
    if FAULT == "reward and status":
        sys.exit(1)


before_asking()
ask("%d %s %s" % (TASK["seed"], EXPECTED, FAULT))
between()
if FAULT == "two calls at once":
    threads = [threading.Thread(target=ask, args=("one of %d" % i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
else:
    ask("another")
at_the_end()
