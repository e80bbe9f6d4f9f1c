// tools/mcp/http_transport.h -- an MCP server behind an address, by either of the protocol's two ways over HTTP.
//
// Since revision 2025-03-26 one address takes every message and answers it, with JSON or with a stream of events.
// Before (2024-11-05), a stream of events is opened first; it names the address to post to and brings all answers.
// Which way a server speaks shows in its answer to the first message.
#pragma once

#include <memory>
#include <string>

#include "carnot/http/client.h"
#include "carnot/tools/mcp/transport.h"

namespace carnot {

/// `headers`: of every request, a key for example. Nothing is sent yet.
std::unique_ptr<McpTransport> make_http_transport(const std::string& name, Url url, HttpHeaders headers);

}  // namespace carnot
