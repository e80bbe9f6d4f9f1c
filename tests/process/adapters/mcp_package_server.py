"""A server made with the package mcp, version 1 or 2: python mcp_package_server.py stdio|streamable-http|sse [PORT]"""
import sys

try:
    from mcp.server.mcpserver import MCPServer as Server  # version 2

    def run(server, transport, port):
        server.run(transport, **({} if transport == "stdio" else {"port": port}))
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server  # version 1

    def run(server, transport, port):
        server.settings.port = port
        server.run(transport)

server = Server("sums")
notes = []


@server.tool()
def add(a: int, b: int = 1) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def note(text: str) -> str:
    """Keeps a note, and returns how many there are."""
    notes.append(text)
    return "%d notes" % len(notes)


@server.tool()
async def fail(reason: str) -> str:
    """Fails."""
    raise ValueError(reason)


if __name__ == "__main__":
    run(server, sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 8000)
