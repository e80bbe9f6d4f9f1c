// tool/toolbox.h -- the tools that a recipe lists: built-in ones, Python functions, MCP servers.
//
//   calculator                       built in
//   search passages.jsonl            built in: BM25 over the passages of a file (tool/search/passages.h)
//   search http://127.0.0.1:8000     a server of Search-R1's API, or an index file (tool/retriever/search_tool.h)
//   search web                       built in: an API that searches the web, or a file of its answers (tool/web/web.h)
//   browse                           built in: the text of a web page
//   python  code_interpreter         built in: Python code of the policy's in a sandbox
//   (tool/python_sandbox/code_tool.h) my_tools.py:search               a Python function (python/carnot_tools.py) mcp
//   python3 server.py --root .   an MCP server that is started: words as a shell splits them, quotes included mcp
//   http://127.0.0.1:8000/mcp    an MCP server that runs servers.json                     MCP servers as other clients
//   list them: {"mcpServers": {NAME: {"command", "args",
//                                    "env", "cwd"} or {"url", "headers"}}}
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/tool/python_sandbox/code_tool.h"
#include "carnot/tool/tool.h"
#include "carnot/tool/web/options.h"

namespace carnot {

/// Who talks to one session of an MCP server.
enum class ToolSessions {
  Auto,     ///< All where every tool of the server is marked as one that only reads, else Episode
  All,      ///< all episodes
  Episode,  ///< one: a session, and of a server that is started a process, for each
};

/// What the tools keep from one call to another.
enum class ToolMemory {
  None,     ///< nothing that another episode or branch could notice
  Episode,  ///< something of its own for each episode
  World,    ///< something that all share: a Python function that says so
};

struct ToolboxOptions {
  std::vector<std::string> tools{};
  std::string python = "python3";
  double start_seconds = 60;
  double call_seconds = 30;
  ToolSessions sessions = ToolSessions::Auto;
  CodeToolOptions code{};  ///< of `python` and `code_interpreter`
  WebOptions web{};        ///< of `search web` and `browse`
};

class JsonSchema;
class ToolSource;

class Toolbox {
 public:
  /// Starts what there is to start. The error tells every entry that cannot be used, with the reason; also one name for
  /// two tools, and a schema that is none.
  static Result<std::shared_ptr<const Toolbox>> open(const ToolboxOptions& options);
  ~Toolbox();

  /// In the order of the entries.
  const std::vector<ToolDescription>& descriptions() const { return descriptions_; }

  /// The tools of one episode; arguments are compared with the schema before each call. A call throws PeerFailure where
  /// what it needs is away.
  ToolSet for_an_episode() const;

  ToolMemory memory() const { return memory_; }

 private:
  Toolbox();
  ToolSet make_tools() const;

  std::vector<std::unique_ptr<ToolSource>> sources_;
  std::vector<ToolDescription> descriptions_;
  std::vector<std::shared_ptr<const JsonSchema>> schemas_;  // as descriptions_
  std::optional<ToolSet> common_;                           // where no episode has tools of its own
  ToolMemory memory_ = ToolMemory::None;
};

/// Words of a command, split at blanks; '...' and "..." hold blanks together, and \ takes the next character as it is.
/// The error names a quote that does not end.
Result<std::vector<std::string>> command_words(std::string_view text);

}  // namespace carnot
