#include "carnot/tools/mcp/server.h"

#include <functional>

#include "carnot/core/base/json.h"
#include "carnot/core/base/log.h"
#include "carnot/tools/mcp/transport.h"

namespace carnot {
namespace {

using SessionSource = std::function<std::shared_ptr<McpSession>()>;

/// A session that is started at the first call and never again.
class OwnSession {
 public:
  explicit OwnSession(std::shared_ptr<McpServer> server) : server_(std::move(server)) {}

  std::shared_ptr<McpSession> get() {
    const std::lock_guard lock(mutex_);
    if (!session_) session_ = server_->connect();
    return session_;
  }

 private:
  std::shared_ptr<McpServer> server_;
  std::mutex mutex_{};
  std::shared_ptr<McpSession> session_{};
};

class McpTool final : public Tool {
 public:
  McpTool(ToolDescription description, std::string name, SessionSource session)
      : description_(std::move(description)), name_(std::move(name)), session_(std::move(session)) {}

  const ToolDescription& description() const override { return description_; }

  ToolResult call(std::string_view arguments, Deadline deadline) override {
    const auto given = parse_json_object<OrderedJson>(arguments, "arguments");
    if (!given) return {.text = "Error: " + given.error().message, .status = "bad_arguments"};
    return session_()->call(name_, *given, deadline);
  }

 private:
  ToolDescription description_;
  std::string name_;
  SessionSource session_;
};

}  // namespace

std::unique_ptr<McpSession> McpServer::connect() const {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                             std::chrono::duration<double>(options_.start_seconds));
  if (options_.url.empty())
    return std::make_unique<McpSession>(start_stdio_transport(options_.name, options_.program), deadline);
  const auto url = parse_url(options_.url);
  if (!url) throw PeerFailure(options_.name + ": " + url.error().message);
  HttpHeaders headers;
  for (const auto& [name, value] : options_.headers) headers.push_back({name, value});
  return std::make_unique<McpSession>(make_http_transport(options_.name, *url, std::move(headers)), deadline);
}

std::shared_ptr<McpSession> McpServer::session() {
  const std::lock_guard lock(mutex_);
  if (session_ && session_->is_alive()) return session_;
  pause_.check();
  if (session_) log_warning(options_.name + " is started again");
  try {
    session_ = connect();
    pause_.succeeded();
    return session_;
  } catch (const PeerFailure& failure) {
    pause_.failed(failure.what());
    throw;
  }
}

std::vector<std::shared_ptr<Tool>> mcp_tools(const std::shared_ptr<McpServer>& server, const McpTools& tools,
                                             McpSessions sessions) {
  SessionSource source = [server] { return server->session(); };
  if (sessions == McpSessions::Own) source = [own = std::make_shared<OwnSession>(server)] { return own->get(); };
  std::vector<std::shared_ptr<Tool>> made;
  for (std::size_t i = 0; i < tools.tools.size(); ++i)
    made.push_back(std::make_shared<McpTool>(tools.tools[i], tools.names[i], source));
  return made;
}

}  // namespace carnot
