#include "carnot/tools/toolbox/toolbox.h"

#include <algorithm>
#include <map>
#include <utility>

#include "carnot/core/base/strings.h"
#include "carnot/core/env/tool.h"

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

bool matches(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t at = star + 1; at <= text.size(); ++at)  // a star is one character at least
    if (matches(rest, text.substr(at))) return true;
  return false;
}

/// The row of the table that an entry belongs to; the table's size if no row fits.
std::size_t row_of(std::string_view entry) {
  const auto& table = tool_kinds();
  const auto row = std::ranges::find_if(table, [entry](const ToolKindEntry& kind) {
    return std::ranges::any_of(kind.patterns, [entry](std::string_view pattern) { return matches(pattern, entry); });
  });
  return static_cast<std::size_t>(row - table.begin());
}

OpenedTools open_entries(const ToolboxOptions& options) {
  OpenedTools opened;
  std::map<std::size_t, std::vector<ToolEntry>> by_kind;
  for (std::size_t i = 0; i < options.tools.size(); ++i) {
    const std::string text(trim(options.tools[i]));
    const std::size_t row = row_of(text);
    if (row == tool_kinds().size())
      opened.problems.push_back("env.tools: \"" + options.tools[i] + "\": expected " + tool_forms() +
                                " (docs/tools.md)");
    else if (options.kinds[row] == nullptr)
      opened.problems.push_back("env.tools: \"" + text + "\" is not in this build of carnot; `./run build` adds it");
    else
      by_kind[row].push_back({.index = i, .text = text});
  }
  for (const auto& [row, entries] : by_kind) options.kinds[row]->open(entries, options.times, opened);
  std::ranges::stable_sort(opened.sources, {}, &OpenedTools::Source::entry);
  return opened;
}

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

ToolKinds make_tool_kinds() {
  ToolKinds kinds;
  for (const ToolKindEntry& entry : tool_kinds()) kinds.push_back(entry.make == nullptr ? nullptr : entry.make());
  return kinds;
}

Toolbox::Toolbox() = default;
Toolbox::~Toolbox() = default;

Result<std::shared_ptr<const Toolbox>> Toolbox::open(const ToolboxOptions& options) {
  OpenedTools opened = open_entries(options);
  if (!opened.problems.empty()) return join_errors(opened.problems);
  std::shared_ptr<Toolbox> box(new Toolbox);
  std::vector<std::string> problems;
  for (OpenedTools::Source& source : opened.sources)
    if (const Status added = box->add(std::move(source.tools)); !added) problems.push_back(added.error().message);
  if (!problems.empty()) return join_errors(problems);
  const bool own =
      std::ranges::any_of(box->sources_, [](const auto& source) { return source->memory() == ToolMemory::Episode; });
  if (!own) box->common_ = box->make_tools();
  return std::shared_ptr<const Toolbox>(std::move(box));
}

Status Toolbox::add(std::unique_ptr<ToolSource> source) {
  std::vector<std::string> problems;
  memory_ = std::max(memory_, source->memory());
  for (const std::shared_ptr<Tool>& tool : source->for_an_episode()) {
    const ToolDescription& description = tool->description();
    const auto same = std::ranges::find(descriptions_, description.name, &ToolDescription::name);
    if (same != descriptions_.end())
      problems.push_back("env.tools: " + owners_[static_cast<std::size_t>(same - descriptions_.begin())] + " and " +
                         source->name() + " both have a tool " + description.name);
    descriptions_.push_back(description);
    owners_.push_back(source->name());
    auto schema = arguments_schema(description);
    if (schema)
      schemas_.push_back(std::move(schema).value());
    else
      problems.push_back("env.tools: " + source->name() + ": " + schema.error().message);
  }
  sources_.push_back(std::move(source));
  if (!problems.empty()) return join_errors(problems);
  return Done{};
}

ToolSet Toolbox::for_an_episode() const { return common_ ? *common_ : make_tools(); }

ToolSet Toolbox::make_tools() const {
  SharedTools tools;
  for (const auto& source : sources_)
    for (std::shared_ptr<Tool>& tool : source->for_an_episode()) {
      const std::size_t place = tools.size();
      tools.push_back(checked(std::move(tool), schemas_[place]));
    }
  return ToolSet(std::move(tools));
}

}  // namespace carnot
