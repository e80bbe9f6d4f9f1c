#include "carnot/worlds/swe/environment.h"

#include <algorithm>
#include <set>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"
#include "carnot/core/base/strings.h"
#include "carnot/worlds/swe/scaffold.h"
#include "carnot/worlds/swe/test_log.h"
#include "carnot/worlds/swe/texts.h"
#include "carnot/worlds/tool_use/tool_use.h"

namespace carnot {
namespace {

const std::string kRepository = "testbed/";

/// What pytest and the interpreter read before they run a test.
bool steers_tests(std::string_view path) {
  static const std::set<std::string_view> kAnywhere{"conftest.py", "sitecustomize.py", "usercustomize.py"};
  static const std::set<std::string_view> kAtTheTop{"pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini",
                                                    "setup.cfg",  "pytest.py",   "_pytest.py"};
  const std::size_t slash = path.rfind('/');
  const std::string_view name = path.substr(slash == std::string_view::npos ? 0 : slash + 1);
  if (kAnywhere.count(name) > 0 || (slash == std::string_view::npos && kAtTheTop.count(name) > 0)) return true;
  return path.starts_with("pytest/") || path.starts_with("_pytest/");
}

}  // namespace

SweFiles repository_in(const SweFolder& folder) {
  SweFiles files;
  for (const auto& [path, file] : folder.files)
    if (path.starts_with(kRepository)) files[path.substr(kRepository.size())] = file;
  return files;
}

SweFolder folder_for_tests(const SweTask& task, const SweFolder& folder) {
  SweFiles files = repository_in(folder);
  std::erase_if(files, [](const auto& entry) { return steers_tests(entry.first); });
  for (const auto& [path, file] : task.repository)
    if (steers_tests(path)) files[path] = file;
  for (const auto& [path, file] : task.tests) files[path] = file;
  return folder_with(files);
}

SweGrade grade(const SweTask& task, const SweFolder& folder, const SweWorkshop& workshop, double seconds) {
  if (repository_in(folder) == task.repository) return {};
  std::string command = "python3 -m pytest -rA -p no:cacheprovider --color=no";
  for (const std::string& file : task.test_files) command += " " + in_single_quotes(file);
  const TestStatuses statuses = parse_pytest_log(workshop.shell(command, seconds, folder_for_tests(task, folder)));
  return {.success = all_passed(statuses, task.passing, task.no_others),
          .tests_passed = share_passed(statuses, task.passing, task.no_others)};
}

SweEnvironment::SweEnvironment(std::shared_ptr<const SweTask> task, std::shared_ptr<const SweWorkshop> workshop,
                               const SweLimits& limits)
    : task_(std::move(task)),
      workshop_(std::move(workshop)),
      limits_(limits),
      folder_(folder_with(task_->repository)) {}

Protocol SweEnvironment::protocol() const {
  return {.action_tags = {}, .max_turns = limits_.max_steps, .max_response_tokens = limits_.max_response_tokens};
}

Opening SweEnvironment::open() {
  return {.system = std::string(kSweSystemPrompt),
          .user = swe_user_text(task_->issue) + steps_remaining_text(limits_.max_steps - 1)};
}

Reply SweEnvironment::step(const PolicyResponse& response) {
  CARNOT_CHECK(!done_, "the episode is over");
  ++steps_;
  const SweCall call = read_swe_call(response.text);
  Reply reply{.valid_action = !call.name.empty(), .tool = call.name};
  done_ = ends_episode(call) || steps_ == limits_.max_steps;
  if (call.name.empty()) {
    reply.text = missing_call_text();
  } else if (ends_episode(call)) {
    reply.status = "ok";
  } else {
    const SweToolOutput output = workshop_->call(swe_command(call), limits_.command_seconds, folder_);
    reply.text = cut_output(swe_observation(call, output.text, output.exit_code), limits_.max_observation);
    reply.status = output.exit_code == "0" ? "ok" : "error";
  }
  if (!done_)
    reply.text += steps_remaining_text(limits_.max_steps - steps_ - 1);
  else
    end(reply, ends_episode(call));
  return reply;
}

void SweEnvironment::end(Reply& reply, bool finished) {
  const SweGrade result = grade(*task_, folder_, *workshop_, limits_.test_seconds);
  reply.text.clear();
  reply.done = true;
  reply.outcome = finished ? Outcome::Finished : Outcome::OutOfTurns;
  reply.success = result.success;
  reply.reward = result.success ? limits_.reward : 0;
  reply.measures = {{"resolved", result.success ? 1 : 0},
                    {"tests_passed", result.tests_passed},
                    {"steps", steps_},
                    {"changed", repository_in(folder_) == task_->repository ? 0 : 1}};
}

std::string SweEnvironment::anchor() const {
  std::string all;
  for (const auto& [path, file] : folder_.files) {
    for (const std::string* part : {&path, &file.content}) all += std::to_string(part->size()) + ":" + *part;
    all += file.executable ? 'x' : '-';
  }
  for (const std::string& path : folder_.folders) all += path + "\n";
  return sha256_hex(all);
}

std::map<std::string, std::string> SweEnvironment::info() const {
  return {{"task", task_->id}, {"difficulty", std::to_string(task_->difficulty)}};
}

}  // namespace carnot
