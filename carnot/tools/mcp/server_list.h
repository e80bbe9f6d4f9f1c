// tools/mcp/server_list.h -- the file in which clients of MCP list their servers.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/tools/mcp/server.h"

namespace carnot {

/// Words of a command, split at blanks; '...' and "..." hold blanks together, and \ takes the next character as it is.
/// The error names a quote that does not end.
Result<std::vector<std::string>> command_words(std::string_view text);

/// {"mcpServers": {NAME: {"command", "args", "env", "cwd"} or {"url", "headers"}}}, in its order; `${NAME}` in values
/// is the environment's variable. Fields that others know are passed over, and so is a server with "disabled": true.
/// The error tells every problem, with file, server and field.
Result<std::vector<McpServerOptions>> parse_mcp_servers(std::string_view text, const std::string& file);

}  // namespace carnot
