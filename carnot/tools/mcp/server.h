// tools/mcp/server.h -- MCP servers as sources of tools: the file that lists them, and their sessions, started again
// when they are over.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/subprocess/peer.h"
#include "carnot/tools/mcp/session.h"

namespace carnot {

struct McpServerOptions {
  std::string name{};     ///< in messages and in the log
  ProgramCall program{};  ///< or
  std::string url{};
  std::vector<std::pair<std::string, std::string>> headers{};  ///< of every request to `url`
  double start_seconds = 60;
};

/// The session that several callers share.
class McpServer {
 public:
  explicit McpServer(McpServerOptions options) : options_(std::move(options)) {}

  /// A new session, which is not shared. Throws PeerFailure. Any thread.
  std::unique_ptr<McpSession> connect() const;

  /// The common session, made again where it is over; what fails to start is tried again after a pause
  /// (RestartPause). Throws PeerFailure. Any thread.
  std::shared_ptr<McpSession> session();

  const std::string& name() const { return options_.name; }

 private:
  McpServerOptions options_;
  std::mutex mutex_{};
  std::shared_ptr<McpSession> session_{};
  RestartPause pause_{};
};

/// The tools of a server for one episode. With a session for the episode alone, that is started at the first call, and
/// not again where it ends: what it knew is lost, and a call then throws. Without, the server's common one is used.
enum class McpSessions { Common, Own };
std::vector<std::shared_ptr<Tool>> mcp_tools(const std::shared_ptr<McpServer>& server, const McpTools& tools,
                                             McpSessions sessions);

/// Words of a command, split at blanks; '...' and "..." hold blanks together, and \ takes the next character as it is.
/// The error names a quote that does not end.
Result<std::vector<std::string>> command_words(std::string_view text);

/// {"mcpServers": {NAME: {"command", "args", "env", "cwd"} or {"url", "headers"}}}, in its order; `${NAME}` in values
/// is the environment's variable. Fields that others know are passed over, and so is a server with "disabled": true.
/// The error lists every problem, with file, server and field.
Result<std::vector<McpServerOptions>> parse_mcp_servers(std::string_view text, const std::string& file);

}  // namespace carnot
