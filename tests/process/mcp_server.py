"""An MCP server without dependencies, which can fail in every way that a server can.

    python3 mcp_server.py [--version 2024-11-05] [--read-only] [--stateless] [--http PORT | --sse PORT]

Port 0 is a free one; the server then prints it. The tool `fault` does what its argument says.
"""
import argparse
import http.server
import json
import os
import queue
import signal
import sys
import threading
import time
import urllib.parse

FAULTS = ["kill", "exit", "hang", "slow", "garbage", "cut", "wrong id", "twice", "no content", "internal error",
          "close output", "say more"]

TOOLS = [
    {"name": "add", "description": "Adds.", "inputSchema": {"type": "object", "required": ["a", "b"], "properties": {
        "b": {"type": "number"}, "a": {"type": "number"}}}},
    {"name": "count.up", "description": "Counts its calls.", "inputSchema": {"type": "object"}},
    {"name": "environment", "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}}},
    {"name": "fault", "inputSchema": {"type": "object", "properties": {"what": {"type": "string"}}}},
    {"name": "refuse", "description": "Says no.", "inputSchema": {"type": "object"}},
    {"name": "picture", "inputSchema": {"type": "object"}},
]


def text(said):
    return {"content": [{"type": "text", "text": said}]}


class Session:
    """What one client sees. `send` writes a message to it, `raw` any bytes."""

    def __init__(self, options, send, raw):
        self.options, self.send, self.raw = options, send, raw
        self.count, self.initialized, self.pong = 0, False, threading.Event()

    def answer(self, request, **what):
        self.send(dict({"jsonrpc": "2.0", "id": request["id"]}, **what))

    def error(self, request, code, message):
        self.answer(request, error={"code": code, "message": message})

    def receive(self, message):
        if message.get("id") == "are you there":
            return self.pong.set()
        method = message.get("method")
        if method == "notifications/initialized":
            self.initialized = True
        if "id" not in message:
            return None
        meta = message.get("params", {}).get("_meta", {})
        if self.options.stateless and "io.modelcontextprotocol/protocolVersion" not in meta:
            return self.error(message, -32601, "there is no handshake any more")
        if method == "initialize":
            return self.answer(message, result={"protocolVersion": self.options.version,
                                                "capabilities": {"tools": {}}, "serverInfo": {"name": "fake"}})
        if not self.initialized and not self.options.stateless:
            return self.error(message, -32002, "not initialized")
        if method == "tools/list":
            return self.list(message)
        if method == "tools/call":
            return self.call(message, message["params"]["name"], message["params"]["arguments"])
        return self.error(message, -32601, "no method " + str(method))

    def list(self, request):
        """Two pages."""
        first = "cursor" not in request.get("params", {})
        tools = [dict(one, annotations={"readOnlyHint": True}) if self.options.read_only else one for one in TOOLS]
        page = {"tools": tools[:3], "nextCursor": "3"} if first else {"tools": tools[3:]}
        self.answer(request, result=page)

    def call(self, request, name, arguments):
        self.send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": name}})
        if name == "add":
            return self.answer(request, result=text("%g" % (arguments["a"] + arguments["b"])))
        if name == "count.up":
            self.count += 1
            return self.answer(request, result=text(str(self.count)))
        if name == "environment":
            return self.answer(request, result=text(os.environ.get(arguments["name"], "")))
        if name == "refuse":
            return self.answer(request, result=dict(text("I will not."), isError=True))
        if name == "picture":
            return self.answer(request, result={"content": [{"type": "image", "data": "AA", "mimeType": "image/png"}]})
        if name == "fault":
            return self.go_wrong(request, arguments["what"])
        return self.error(request, -32602, "Unknown tool: " + name)

    def go_wrong(self, request, what):
        right = {"result": text("right")}
        if what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "exit":
            sys.stderr.write("I leave now\n")
            sys.stderr.flush()
            os._exit(3)
        if what == "hang":
            time.sleep(60)
        if what == "slow":
            time.sleep(0.02)
        if what == "garbage":
            self.raw("Traceback (most recent call last):\n")
        if what == "cut":
            self.raw('{"jsonrpc": "2.0", "id": 3, "resu')
            os._exit(0)
        if what == "wrong id":
            return self.send({"jsonrpc": "2.0", "id": "another", "result": text("1000")})
        if what == "twice":
            self.answer(request, **right)
            return self.answer(request, result=text("1000"))
        if what == "no content":
            return self.answer(request, result={})
        if what == "internal error":
            return self.error(request, -32603, "the database is away")
        if what == "close output":
            os.close(1)
            time.sleep(60)
        if what == "say more":
            self.send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            self.send({"jsonrpc": "2.0", "id": "are you there", "method": "ping"})
            if not self.pong.wait(5):
                return self.error(request, -32603, "no pong")
        return self.answer(request, **right)


def serve_stdio(options):
    writing = threading.Lock()

    def raw(said):
        with writing:
            os.write(1, said.encode())

    session = Session(options, lambda message: raw(json.dumps(message) + "\n"), raw)
    print("the fake server runs", file=sys.stderr)
    for line in sys.stdin:
        threading.Thread(target=session.receive, args=(json.loads(line),), daemon=True).start() \
            if '"tools/call"' in line else session.receive(json.loads(line))


class Streamable(http.server.BaseHTTPRequestHandler):
    """One address; an answer is a JSON object, or a stream of events for a call."""

    protocol_version = "HTTP/1.1"
    sessions = {}

    def log_message(self, *arguments):
        pass

    def refuse(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        self.refuse(405)

    def do_DELETE(self):
        self.sessions.pop(self.headers["Mcp-Session-Id"], None)
        self.refuse(200)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "application/json" not in self.headers["Accept"] or "text/event-stream" not in self.headers["Accept"]:
            return self.refuse(406)
        if self.options.token and self.headers["Authorization"] != "Bearer " + self.options.token:
            return self.refuse(401)
        number = self.headers["Mcp-Session-Id"]
        if self.options.stateless:
            if self.headers["Mcp-Method"] != message.get("method") and message.get("method") != "initialize":
                return self.refuse(400)
            number = number or "everybody"
            self.sessions.setdefault(number, Session(self.options, None, None))
        elif message.get("method") == "initialize":
            number = "session-%d" % len(self.sessions)
            self.sessions[number] = Session(self.options, None, None)
        elif number not in self.sessions:
            return self.refuse(404)
        elif self.headers["MCP-Protocol-Version"] != self.options.version:
            return self.refuse(400)
        session = self.sessions[number]
        if "id" not in message or "method" not in message:
            session.receive(message)
            return self.refuse(202)
        streams = message["method"] == "tools/call"
        said = []
        if streams:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            event = lambda one: self.wfile.write(("event: message\r\ndata: %s\r\n\r\n" % one).encode())
            session.send = lambda one: event(json.dumps(one))
            session.raw = event
            self.wfile.write(b": keep-alive\n\n")
            return session.receive(message)
        session.send = said.append
        session.receive(message)
        body = json.dumps(said[-1]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Mcp-Session-Id", number)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Events(http.server.BaseHTTPRequestHandler):
    """The transport of 2024-11-05: a stream of events, and an address to post to."""

    sessions = {}

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        messages = queue.Queue()
        number = "s%d" % len(self.sessions)
        self.sessions[number] = Session(self.options, lambda one: messages.put(json.dumps(one)), messages.put)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(("event: endpoint\ndata: /messages?session=%s\n\n" % number).encode())
        while True:
            try:
                self.wfile.write(("event: message\ndata: %s\n\n" % messages.get(timeout=0.5)).encode())
            except queue.Empty:
                self.wfile.write(b": still here\n\n")

    def do_POST(self):
        number = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query).get("session", [""])[0]
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if number in self.sessions and "id" not in message:
            self.sessions[number].receive(message)  # the message is processed before the next request comes
        said = b"Accepted" if number in self.sessions else b"Method Not Allowed"
        self.send_response(202 if number in self.sessions else 405)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)
        if number in self.sessions and "id" in message:
            self.wfile.flush()
            threading.Thread(target=self.sessions[number].receive, args=(message,), daemon=True).start()


def serve_http(options, handler, port):
    handler.options = options
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", default="2025-06-18")
    parser.add_argument("--read-only", action="store_true")
    parser.add_argument("--stateless", action="store_true")
    parser.add_argument("--token", default="")
    parser.add_argument("--http", type=int)
    parser.add_argument("--sse", type=int)
    options = parser.parse_args()
    if options.http is not None:
        serve_http(options, Streamable, options.http)
    elif options.sse is not None:
        serve_http(options, Events, options.sse)
    else:
        serve_stdio(options)
