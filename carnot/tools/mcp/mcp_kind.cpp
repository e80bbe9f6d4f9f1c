#include "carnot/core/base/file.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/subprocess/peer.h"
#include "carnot/http/url.h"
#include "carnot/tools/mcp/server.h"
#include "carnot/tools/toolbox/toolbox.h"

namespace carnot {
namespace {

/// Who talks to one session of an MCP server.
enum class ToolSessions {
  Auto,     ///< All where every tool of the server is marked as one that only reads, else Episode
  All,      ///< all episodes
  Episode,  ///< one: a session, and of a server that is started a process, for each
};

class McpSource final : public ToolSource {
 public:
  /// Throws PeerFailure.
  McpSource(McpServerOptions options, ToolSessions sessions)
      : server_(std::make_shared<McpServer>(std::move(options))), tools_(server_->session()->tools()) {
    const bool all = sessions == ToolSessions::All || (sessions == ToolSessions::Auto && tools_.only_read);
    sessions_ = all ? McpSessions::Common : McpSessions::Own;
  }
  const std::string& name() const override { return server_->name(); }
  SharedTools for_an_episode() const override { return mcp_tools(server_, tools_, sessions_); }
  ToolMemory memory() const override { return sessions_ == McpSessions::Own ? ToolMemory::Episode : ToolMemory::None; }

 private:
  std::shared_ptr<McpServer> server_;
  McpTools tools_;
  McpSessions sessions_ = McpSessions::Common;
};

/// "mcp COMMAND" and "mcp URL".
Result<McpServerOptions> server_of_entry(const std::string& entry) {
  const std::string what(trim(std::string_view(entry).substr(4)));
  McpServerOptions options{.name = "mcp " + what};
  if (what.starts_with("http://") || what.starts_with("https://")) {
    options.url = what;
    if (const auto url = parse_url(what)) options.name = "mcp " + url->shown();  // without what may be a key
    return options;
  }
  auto words = command_words(what);
  if (!words) return Error{"mcp " + what + ": " + words.error().message};
  options.program.command = std::move(words).value();
  return options;
}

Result<std::vector<McpServerOptions>> servers_of_entry(const std::string& entry) {
  if (entry.starts_with("mcp ")) {
    CARNOT_ASSIGN_OR_RETURN(auto server, server_of_entry(entry));
    return std::vector{std::move(server)};
  }
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(entry));
  return parse_mcp_servers(text, entry);
}

class McpKind final : public ToolKind {
 public:
  void fields(FieldVisitor& visit) override {
    enum_field(visit, "tool_sessions", sessions_, {"auto", "all", "episode"},
               "who shares a session of an MCP server: all episodes, or none; auto: all where its tools only read");
  }

  void open(std::span<const ToolEntry> entries, const ToolTimes& times, OpenedTools& opened) const override {
    for (const ToolEntry& entry : entries) {
      auto servers = servers_of_entry(entry.text);
      if (!servers) {
        opened.problems.push_back("env.tools: " + servers.error().message);
        continue;
      }
      for (McpServerOptions& server : *servers) {
        server.start_seconds = times.start;
        try {
          opened.sources.push_back({entry.index, std::make_unique<McpSource>(std::move(server), sessions_)});
        } catch (const PeerFailure& failure) {
          opened.problems.push_back(std::string("env.tools: ") + failure.what());
        }
      }
    }
  }

 private:
  ToolSessions sessions_ = ToolSessions::Auto;
};

}  // namespace

std::unique_ptr<ToolKind> make_mcp_kind() { return std::make_unique<McpKind>(); }

}  // namespace carnot
