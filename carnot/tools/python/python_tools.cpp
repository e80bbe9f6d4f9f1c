#include <filesystem>

#include "carnot/core/base/json.h"
#include "carnot/core/env/tool.h"
#include "carnot/core/subprocess/answer_reader.h"
#include "carnot/core/subprocess/peer.h"
#include "carnot/core/subprocess/python_folder.h"
#include "carnot/tools/toolbox/toolbox.h"

namespace carnot {
namespace {

struct PythonToolOptions {
  std::vector<std::string> functions{};  ///< FILE:FUNCTION each
  std::string python = "python3";
  double start_seconds = 60;
  double call_seconds = 30;
};

struct PythonTools {
  std::vector<std::shared_ptr<Tool>> tools{};  ///< in the order of the functions
  bool change_state = false;                   ///< one of them says that it does
};

class PythonTool final : public Tool {
 public:
  PythonTool(ToolDescription description, std::shared_ptr<PeerPool> pool)
      : description_(std::move(description)), pool_(std::move(pool)) {}

  const ToolDescription& description() const override { return description_; }

  ToolResult call(std::string_view arguments, Deadline) override {
    const PeerAnswer answer = pool_->take()->call({{"op", "call"},
                                                   {"tool", description_.name},
                                                   {"arguments", parse_json_object(arguments, "arguments").value()}});
    AnswerReader reader(answer);
    ToolResult result;
    reader.text("text", result.text);
    reader.text("status", result.status);
    if (!reader.has("text")) reader.refuse("text", "a string");
    reader.finish();
    return result;
  }

 private:
  ToolDescription description_;
  std::shared_ptr<PeerPool> pool_;
};

PythonTools read_tools(const PeerAnswer& answer, const std::shared_ptr<PeerPool>& pool) {
  AnswerReader reader(answer);
  PythonTools made;
  int protocol = 0;
  reader.count("protocol", protocol, 1, 1);
  reader.objects("tools", [&](AnswerReader& one) {
    ToolDescription tool;
    bool changes_state = false;
    one.text("name", tool.name);
    one.text("description", tool.description);
    one.text("parameters", tool.parameters);
    one.flag("changes_state", changes_state);
    made.change_state |= changes_state;
    if (const Status status = tool.check(); !status) one.refuse("name", status.error().message);
    made.tools.push_back(std::make_shared<PythonTool>(std::move(tool), pool));
  });
  reader.finish();
  return made;
}

Status check_files(const std::vector<std::string>& functions) {
  std::vector<std::string> problems;
  for (const std::string& function : functions)
    if (const std::string file = function.substr(0, function.rfind(':'));
        file.ends_with(".py") && !std::filesystem::exists(file))
      problems.push_back("env.tools: " + file + ": no such file");
  return problems.empty() ? Status(Done{}) : join_errors(problems);
}

/// Starts python/carnot_tools.py, one process for all functions. The error names the function and says why it cannot be
/// a tool: no such file, a parameter without a type hint. A call throws PeerFailure where the process ends or hangs;
/// the next one starts it again.
Result<PythonTools> start_python_tools(const PythonToolOptions& options) {
  CARNOT_RETURN_IF_ERROR(check_files(options.functions));
  const auto folder = python_folder();
  if (!folder) return Error{"env.tools: " + folder.error().message};
  PeerOptions peer{.name = "env.tools",
                   .program = {.command = {options.python, (*folder / "carnot_tools.py").string()},
                               .environment = python_variables()},
                   .start_seconds = options.start_seconds,
                   .call_seconds = options.call_seconds};
  peer.program.command.insert(peer.program.command.end(), options.functions.begin(), options.functions.end());
  auto pool = std::make_shared<PeerPool>(std::move(peer), Json{{"op", "hello"}, {"protocol", 1}}, 1);
  CARNOT_RETURN_IF_ERROR(pool->start());
  try {
    return read_tools(pool->take()->greeting(), pool);
  } catch (const PeerFailure& failure) {
    return Error{failure.what()};
  }
}

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
