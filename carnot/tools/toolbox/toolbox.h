// tools/toolbox/toolbox.h -- the tools that a recipe lists, opened.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "carnot/core/env/tool.h"
#include "carnot/tools/toolbox/tool_kind.h"

namespace carnot {

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
