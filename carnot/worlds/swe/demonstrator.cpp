#include "carnot/worlds/swe/demonstrator.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

class SweAgent final : public ScriptedAgent {
 public:
  explicit SweAgent(std::vector<SweCall> calls) : calls_(std::move(calls)) {}

  PolicyResponse respond(std::string_view) override {
    CARNOT_CHECK(next_ < calls_.size(), "the script is at its end");
    const SweCall& call = calls_[next_++];
    return thought(call) + "\n" + swe_call_text(call);
  }

 private:
  static std::string thought(const SweCall& call) {
    if (call.name == "execute_bash") return "I run the tests.";
    if (call.name == "finish") return "The issue is resolved.";
    const std::string path = call.parameters.at(1).second;
    return call.parameters.front().second == "view" ? "I look at " + path + "." : "The fault is in " + path + ".";
  }

  std::vector<SweCall> calls_;
  std::size_t next_ = 0;
};

}  // namespace

std::vector<SweCall> demonstrated_calls(const SweTask& task) {
  std::vector<SweCall> calls;
  std::set<std::string> seen;
  for (const SweEdit& edit : task.repair)
    if (seen.insert(edit.path).second)
      calls.push_back({.name = "file_editor",
                       .parameters = {{"command", "view"}, {"path", "/testbed/" + edit.path}, {"concise", "False"}}});
  for (auto edit = task.repair.rbegin(); edit != task.repair.rend(); ++edit)
    calls.push_back({.name = "file_editor",
                     .parameters = {{"command", "str_replace"},
                                    {"path", "/testbed/" + edit->path},
                                    {"old_str", "\n" + edit->wrong},
                                    {"new_str", "\n" + edit->right}}});
  calls.push_back({.name = "execute_bash", .parameters = {{"cmd", "python -m pytest -q"}}});
  calls.push_back({.name = "finish", .parameters = {{"command", "submit"}}});
  return calls;
}

std::unique_ptr<ScriptedAgent> make_swe_agent(const SweTask& task) {
  if (task.repair.empty()) return nullptr;
  return std::make_unique<SweAgent>(demonstrated_calls(task));
}

}  // namespace carnot
