#include "carnot/tools/code/code_tool.h"
#include "carnot/tools/toolbox/tool_kind.h"

namespace carnot {
namespace {

class CodeKind final : public ToolKind {
 public:
  void fields(FieldVisitor& visit) override {
    section(visit, "sandbox", options_, "where code of the tools python and code_interpreter runs (docs/sandbox.md)");
  }

  /// Tools of both names share a sandbox.
  void open(std::span<const ToolEntry> entries, const ToolTimes&, OpenedTools& opened) const override {
    const auto runner = open_code_runner(options_);
    if (!runner) return opened.problems.push_back("env.sandbox: " + runner.error().message);
    for (const ToolEntry& entry : entries) opened.add(entry, make_code_tool(entry.text, *runner, options_));
  }

 private:
  CodeToolOptions options_;
};

}  // namespace

std::unique_ptr<ToolKind> make_code_kind() { return std::make_unique<CodeKind>(); }

}  // namespace carnot
