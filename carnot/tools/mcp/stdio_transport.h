// tools/mcp/stdio_transport.h -- an MCP server that is a child process: a message a line over its pipes.
#pragma once

#include <memory>

#include "carnot/core/subprocess/line_program.h"
#include "carnot/tools/mcp/transport.h"

namespace carnot {

/// Starts the program; what it writes to standard error goes to the log under `name`. Throws PeerFailure.
std::unique_ptr<McpTransport> start_stdio_transport(const std::string& name, const ProgramCall& call);

}  // namespace carnot
