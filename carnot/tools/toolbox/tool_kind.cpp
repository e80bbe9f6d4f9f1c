#include "carnot/tools/toolbox/tool_kind.h"

#include <utility>

namespace carnot {
namespace {

class CommonTools final : public ToolSource {
 public:
  CommonTools(std::string name, SharedTools tools, ToolMemory memory)
      : name_(std::move(name)), tools_(std::move(tools)), memory_(memory) {}
  const std::string& name() const override { return name_; }
  SharedTools for_an_episode() const override { return tools_; }
  ToolMemory memory() const override { return memory_; }

 private:
  std::string name_;
  SharedTools tools_;
  ToolMemory memory_;
};

class EachEntry final : public ToolKind {
 public:
  using Opener = std::function<Result<std::shared_ptr<Tool>>(const std::string&)>;
  explicit EachEntry(Opener open) : open_(std::move(open)) {}
  void open(std::span<const ToolEntry> entries, const ToolTimes&, OpenedTools& opened) const override {
    for (const ToolEntry& entry : entries) opened.add(entry, open_(entry.text));
  }

 private:
  Opener open_;
};

const std::vector<ToolKindEntry> kNone;
const std::vector<ToolKindEntry>* offered = &kNone;

}  // namespace

std::unique_ptr<ToolSource> common_tools(std::string name, SharedTools tools, ToolMemory memory) {
  return std::make_unique<CommonTools>(std::move(name), std::move(tools), memory);
}

void OpenedTools::add(const ToolEntry& entry, Result<std::shared_ptr<Tool>> tool) {
  if (!tool) return problems.push_back("env.tools: " + tool.error().message);
  sources.push_back({entry.index, common_tools(entry.text, {std::move(tool).value()})});
}

std::unique_ptr<ToolKind> each_entry(std::function<Result<std::shared_ptr<Tool>>(const std::string& entry)> open) {
  return std::make_unique<EachEntry>(std::move(open));
}

void offer_tool_kinds(const std::vector<ToolKindEntry>& table) { offered = &table; }

const std::vector<ToolKindEntry>& tool_kinds() { return *offered; }

std::string tool_forms() {
  std::string forms;
  for (const ToolKindEntry& entry : tool_kinds()) forms += (forms.empty() ? "" : ", ") + std::string(entry.forms);
  return forms;
}

}  // namespace carnot
