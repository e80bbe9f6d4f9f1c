// tools/mcp/session.h -- a conversation with an MCP server: handshake, its tools, calls of them.
//
// A server that ends, does not answer in time or writes anything but JSON-RPC is over: its callers get a
// PeerFailure. Notifications are passed over, its pings are answered, and what else it asks for is refused.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "carnot/core/subprocess/peer.h"
#include "carnot/tools/mcp/messages.h"
#include "carnot/tools/mcp/transport.h"

namespace carnot {

class McpSession {
 public:
  using Deadline = McpTransport::Deadline;

  /// Shakes hands and lists the tools. Throws PeerFailure.
  McpSession(std::unique_ptr<McpTransport> transport, Deadline deadline);
  ~McpSession();
  McpSession(const McpSession&) = delete;
  McpSession& operator=(const McpSession&) = delete;

  const McpTools& tools() const { return tools_; }

  /// Calls a tool by the server's name for it. `arguments`: a JSON object. What the server calls an error of the call
  /// is a result with status "error"; a call that it cannot read one with "bad_arguments". Throws PeerFailure. Any
  /// thread.
  ToolResult call(std::string_view tool, const OrderedJson& arguments, Deadline deadline);

  bool is_alive() const;

 private:
  struct Waiting {
    std::condition_variable changed{};
    std::optional<McpMessage> answer{};
  };

  McpMessage request(std::string_view method, OrderedJson params, std::string_view tool, Deadline deadline);
  OrderedJson result_of(std::string_view method, OrderedJson params, Deadline deadline);
  void shake_hands(Deadline deadline);
  void list_tools(Deadline deadline);
  bool receive(std::string_view text, const std::string& where);
  /// What goes wrong ends the session.
  void send(const std::string& message, std::string_view method, std::string_view tool, Deadline deadline);
  bool deliver(McpMessage message);
  void fail(const std::string& why);
  void close();

  std::unique_ptr<McpTransport> transport_;
  McpTools tools_{};
  bool is_stateless_ = false;
  mutable std::mutex mutex_{};
  std::string failure_{};  // why it is over; empty while it lives
  std::map<std::int64_t, Waiting*> waiting_{};
  std::int64_t last_id_ = 0;
};

}  // namespace carnot
