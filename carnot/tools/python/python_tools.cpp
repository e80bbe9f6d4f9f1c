#include "carnot/tools/python/python_tools.h"

#include <filesystem>

#include "carnot/core/base/json.h"
#include "carnot/core/subprocess/answer_reader.h"
#include "carnot/core/subprocess/peer_pool.h"
#include "carnot/core/subprocess/python_folder.h"

namespace carnot {
namespace {

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

}  // namespace

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

}  // namespace carnot
