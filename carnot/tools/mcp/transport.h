// tools/mcp/transport.h -- how messages reach an MCP server and come back.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "carnot/http/client.h"

namespace carnot {

/// What a transport does with what comes. Called on any thread, also from within send().
struct McpHandlers {
  /// Says whether an answer to a request was among it.
  std::function<bool(std::string_view text, const std::string& where)> on_message{};
  std::function<void(const std::string& why)> on_end{};  ///< nothing more will come
};

class McpTransport {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  virtual ~McpTransport() = default;

  /// Begins to receive. Once. Throws PeerFailure where the server cannot be reached by the deadline.
  virtual void open(McpHandlers handlers, Deadline deadline) = 0;

  /// Hands a message over; may wait for its answer, and hand that to the handler first. Throws PeerFailure where that
  /// takes longer than the deadline, or fails. Any thread. `method`: what the message is, where it is a request.
  virtual void send(const std::string& message, std::string_view method, std::string_view tool, Deadline deadline) = 0;

  /// The revision that was agreed on; HTTP repeats it.
  virtual void set_version(const std::string&) {}

  /// Says farewell; afterwards no handler is called.
  virtual void close() = 0;

  /// Ends it at once. Any thread.
  virtual void kill() = 0;

  /// "mcp server.py (process 71)".
  virtual std::string label() const = 0;
  /// What the server said last, for messages.
  virtual std::string last_words() const { return ""; }
};

/// A server behind an address. `headers`: of every request, a key for example. Nothing is sent yet.
std::unique_ptr<McpTransport> make_http_transport(const std::string& name, Url url, HttpHeaders headers);

}  // namespace carnot
