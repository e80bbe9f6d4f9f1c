// tools/mcp/messages.h -- the messages of the Model Context Protocol that a client of tools reads and writes.
//
// Included by sources only. Keys keep their order: a schema is what the policy reads.
//
// JSON-RPC 2.0 as the specification's revisions 2024-11-05 to 2026-07-28 have it. The last one has no handshake: every
// request carries the version itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/json.h"
#include "carnot/core/env/tool.h"

namespace carnot {

/// The newest revision with a handshake, and the one without.
inline constexpr std::string_view kMcpHandshakeVersion = "2025-11-25";
inline constexpr std::string_view kMcpStatelessVersion = "2026-07-28";

/// Codes of errors: of JSON-RPC, and of a server that speaks other revisions only.
inline constexpr int kMcpMethodNotFound = -32601;
inline constexpr int kMcpBadParameters = -32602;
inline constexpr int kMcpOtherVersion = -32022;

/// A request; `params` with the version in it where `is_stateless`.
std::string mcp_request(std::int64_t id, std::string_view method, OrderedJson params, bool is_stateless);
std::string mcp_notification(std::string_view method);
/// The answer to a server's ping; an error to everything else that it may ask: this client offers nothing.
std::string mcp_answer(const OrderedJson& request);
OrderedJson mcp_initialize_params();

struct McpError {
  int code = 0;
  std::string message{};
};

/// One message of a server.
struct McpMessage {
  enum class Kind { Answer, Request, Notification } kind = Kind::Notification;
  std::int64_t id = 0;              ///< of the request that an Answer belongs to
  OrderedJson body{};               ///< of an Answer the result, else the whole message
  std::optional<McpError> error{};  ///< of an Answer
};

/// The messages in JSON: one, or several in a list (revision 2025-03-26). The error says, after `where`, what was
/// expected.
Result<std::vector<McpMessage>> parse_mcp(std::string_view text, const std::string& where);

/// The version of the answer to initialize; the error names it where it is not one of the known ones.
Result<std::string> read_mcp_version(const OrderedJson& result);

struct McpTools {
  std::vector<ToolDescription> tools{};
  std::vector<std::string> names{};  ///< as the server has them; characters that a policy's call may not have are `_`
  bool only_read = true;             ///< every tool's annotations say that it changes nothing
  std::string next_cursor{};         ///< where the list continues; empty: nowhere
};
Result<McpTools> read_mcp_tools(const OrderedJson& result);

/// The texts of the result, a line break between them; other content as a mark: "[image: image/png]". Status "error"
/// where the server says so.
Result<ToolResult> read_mcp_result(const OrderedJson& result);

}  // namespace carnot
