#include "carnot/tools/python/python_tools.h"
#include "carnot/tools/toolbox/tool_kind.h"

namespace carnot {
namespace {

class PythonKind final : public ToolKind {
 public:
  void fields(FieldVisitor& visit) override {
    visit.field("tool_python", python_, "the interpreter of Python functions");
  }

  /// Python's functions share a process.
  void open(std::span<const ToolEntry> entries, const ToolTimes& times, OpenedTools& opened) const override {
    PythonToolOptions options{.python = python_, .start_seconds = times.start, .call_seconds = times.call};
    for (const ToolEntry& entry : entries) options.functions.push_back(entry.text);
    auto made = start_python_tools(options);
    if (!made) return opened.problems.push_back(made.error().message);
    if (made->tools.size() != entries.size())
      return opened.problems.push_back("env.tools: the process described " + std::to_string(made->tools.size()) +
                                       " of " + std::to_string(entries.size()) + " functions");
    const ToolMemory memory = made->change_state ? ToolMemory::World : ToolMemory::None;
    for (std::size_t i = 0; i < entries.size(); ++i)
      opened.sources.push_back({entries[i].index, common_tools(entries[i].text, {made->tools[i]}, memory)});
  }

 private:
  std::string python_ = "python3";
};

}  // namespace

std::unique_ptr<ToolKind> make_python_kind() { return std::make_unique<PythonKind>(); }

}  // namespace carnot
