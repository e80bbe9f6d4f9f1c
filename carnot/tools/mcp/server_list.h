// tools/mcp/server_list.h -- the file in which clients of MCP list their servers.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "carnot/tools/mcp/server.h"

namespace carnot {

/// {"mcpServers": {NAME: {"command", "args", "env", "cwd"} or {"url", "headers"}}}, in its order; `${NAME}` in values
/// is the environment's variable. Fields that others know are passed over, and so is a server with "disabled": true.
/// The error tells every problem, with file, server and field.
Result<std::vector<McpServerOptions>> parse_mcp_servers(std::string_view text, const std::string& file);

}  // namespace carnot
