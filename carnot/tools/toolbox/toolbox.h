// tools/toolbox/toolbox.h -- kinds of tools that recipes list under env.tools (each a folder, and a row of the
// table in tools/tools.cpp), and the tools of a recipe, opened.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/env/tool.h"

namespace carnot {

/// What the tools keep from one call to another.
enum class ToolMemory {
  None,     ///< nothing that another episode or branch could notice
  Episode,  ///< state of a single episode
  World,    ///< state that all episodes share: a Python function that says so
};

using SharedTools = std::vector<std::shared_ptr<Tool>>;

/// The tools that an entry of the list opened.
class ToolSource {
 public:
  virtual ~ToolSource() = default;
  virtual const std::string& name() const = 0;
  virtual SharedTools for_an_episode() const = 0;
  virtual ToolMemory memory() const = 0;
};

/// The same tools for all episodes.
std::unique_ptr<ToolSource> common_tools(std::string name, SharedTools tools, ToolMemory memory = ToolMemory::None);

struct ToolEntry {
  std::size_t index = 0;  ///< in env.tools
  std::string text{};
};

/// Seconds.
struct ToolTimes {
  double start = 60;
  double call = 30;
};

/// Collects what the entries of a list open, and what is wrong with them.
struct OpenedTools {
  struct Source {
    std::size_t entry = 0;
    std::unique_ptr<ToolSource> tools{};
  };
  std::vector<Source> sources{};
  std::vector<std::string> problems{};  ///< each begins with the key

  /// A source of one tool that all episodes share, or the problem.
  void add(const ToolEntry& entry, Result<std::shared_ptr<Tool>> tool);
};

class ToolKind {
 public:
  virtual ~ToolKind() = default;

  /// The options, shown under `env.`.
  virtual void fields(FieldVisitor&) {}

  /// Starts what the entries of this kind need; called once for all of them.
  virtual void open(std::span<const ToolEntry> entries, const ToolTimes& times, OpenedTools& opened) const = 0;
};

/// A kind without options, each of whose entries is a tool that all episodes share.
std::unique_ptr<ToolKind> each_entry(std::function<Result<std::shared_ptr<Tool>>(const std::string& entry)> open);

/// A row of the table. An entry of env.tools belongs to the first row that has a pattern for it.
struct ToolKindEntry {
  std::vector<std::string_view> patterns;  ///< `*`: any text
  std::string_view forms;                  ///< the patterns as messages and `--help` show them
  std::string_view summary;
  std::unique_ptr<ToolKind> (*make)();  ///< null: this build leaves the kind out
};

/// Sets the table that tool_kinds() returns, once, when a program starts. The table must outlive all calls.
void offer_tool_kinds(const std::vector<ToolKindEntry>& table);

/// The kinds that the program knows (tools/tools.h offers Carnot's own); none before offer_tool_kinds().
const std::vector<ToolKindEntry>& tool_kinds();

/// "calculator, search FILE, mcp COMMAND, ...": all forms.
std::string tool_forms();

/// One of each kind in tool_kinds(), with its options; null for those that this build leaves out.
using ToolKinds = std::vector<std::shared_ptr<ToolKind>>;
ToolKinds make_tool_kinds();

struct ToolboxOptions {
  std::vector<std::string> tools{};
  ToolTimes times{};
  ToolKinds kinds = make_tool_kinds();
};

class JsonSchema;

class Toolbox {
 public:
  /// Starts what there is to start. The error names every entry that cannot be used, with the reason, and two tools
  /// with the same name.
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
  Status add(std::unique_ptr<ToolSource> source);
  ToolSet make_tools() const;

  std::vector<std::unique_ptr<ToolSource>> sources_;
  std::vector<ToolDescription> descriptions_;
  std::vector<std::string> owners_;                         // as descriptions_: the names of their sources
  std::vector<std::shared_ptr<const JsonSchema>> schemas_;  // as descriptions_
  std::optional<ToolSet> common_;                           // where all episodes share all tools
  ToolMemory memory_ = ToolMemory::None;
};

}  // namespace carnot
