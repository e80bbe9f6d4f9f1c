#include "carnot/worlds/swe/factory.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/log.h"
#include "carnot/core/env/epoch_order.h"
#include "carnot/tools/sandbox/python_sandbox.h"
#include "carnot/worlds/swe/environment.h"
#include "carnot/worlds/swe/swe_bench.h"
#include "carnot/worlds/swe/texts.h"

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

constexpr int kAnswerKilobytes = 12 << 10;  ///< of a call that changes as much as it may

using SweTasks = std::vector<std::shared_ptr<const SweTask>>;

struct SweOptions {
  std::string task_source{};
  std::string repositories{};
  std::string task{};
  int max_difficulty = 5;
  int validation_every = 5;
  SweLimits limits{};
  SandboxOptions sandbox{};

  void fields(FieldVisitor& visit) {
    visit.field("task_source", task_source,
                "folder of tasks, NAME.task each, or file of SWE-bench's rows; empty: the thirty of the program");
    visit.field("repositories", repositories, "of SWE-bench's rows: folder with a checkout for each, by instance_id");
    visit.field("task", task, "name of the only task; empty: all");
    visit.field("max_difficulty", max_difficulty, "tasks up to this difficulty", between(1, 5));
    visit.field("validation_every", validation_every,
                "every n-th task is for validation; 0: all are for both training and validation", between(0, 1000));
    visit.field("max_steps", limits.max_steps, "steps per episode", between(1, kMaxEpisodeSteps));
    visit.field("command_seconds", limits.command_seconds, "that a command may take",
                Limits{.low = 0, .high = 1e6, .open_low = true});
    visit.field("test_seconds", limits.test_seconds, "that the tests may take at the end",
                Limits{.low = 0, .high = 1e6, .open_low = true});
    visit.field("reward", limits.reward, "of a repaired repository; everything else earns 0",
                Limits{.low = 0, .high = 1e6, .open_low = true});
    visit.field("max_observation", limits.max_observation, "characters of an observation", between(1000, 1'000'000));
    visit.field("max_response_tokens", limits.max_response_tokens, "tokens that a response may have",
                between(1, kMaxResponseTokens));
    section(visit, "sandbox", sandbox, "what runs the tools (docs/sandbox.md)");
  }
};

SandboxOptions usual_sandbox() {
  SandboxOptions options;
  options.seconds = 320;
  options.output_kb = kAnswerKilobytes;
  options.warm = 2;
  options.shown_at = "/testbed";
  return options;
}

void sort_tasks(std::vector<SweTask>& tasks) {
  std::sort(tasks.begin(), tasks.end(), [](const SweTask& a, const SweTask& b) {
    return std::tie(a.difficulty, a.id) < std::tie(b.difficulty, b.id);
  });
}

class SweFactory final : public EnvironmentFactory {
 public:
  SweFactory() { options_.sandbox = usual_sandbox(); }

  void fields(FieldVisitor& visit) override { options_.fields(visit); }

  Status prepare(std::uint64_t seed) override {
    CARNOT_RETURN_IF_ERROR(check_limits());
    auto tasks = read_tasks();
    if (!tasks) return Error{"env.task_source: " + tasks.error().message};
    CARNOT_RETURN_IF_ERROR(split(std::move(tasks).value()));
    auto sandbox = PythonSandbox::open(options_.sandbox);
    if (!sandbox) return Error{"env.sandbox: " + sandbox.error().message};
    log_info("the tools of swe run " + (*sandbox)->description());
    workshop_ = std::make_shared<const SweWorkshop>(std::move(sandbox).value());
    try {
      if (const Status found = workshop_->check_pytest(); !found)
        return Error{"env.sandbox.interpreter: " + found.error().message};
    } catch (const SandboxFailure& failure) {
      return Error{failure.what()};
    }
    order_ = std::make_unique<EpochOrder>(train_.size(), seed, "swe_epoch");
    return Done{};
  }

  std::unique_ptr<Environment> make(Split split, std::int64_t index) const override {
    CARNOT_CHECK(order_ != nullptr, "prepare() comes first");
    CARNOT_CHECK_GE(index, 0);
    const auto& task = split == Split::Train ? train_[order_->row(index)]
                                             : held_out_[static_cast<std::size_t>(index) % held_out_.size()];
    return std::make_unique<SweEnvironment>(task, workshop_, options_.limits);
  }

  std::int64_t num_training_tasks() const override { return std::ssize(train_); }
  std::int64_t num_validation_tasks() const override { return std::ssize(held_out_); }

  std::unique_ptr<ScriptedAgent> script(const Environment& environment, double, RandomStream) const override {
    const auto* played = dynamic_cast<const SweEnvironment*>(&environment);
    CARNOT_CHECK(played != nullptr, "an environment of another factory");
    return make_swe_agent(played->task());
  }

  std::vector<std::string> tokenizer_texts() const override {
    std::vector<std::string> texts{std::string(kSweSystemPrompt), std::string(kSweUserPrompt)};
    for (const auto& task : train_) {
      texts.push_back(task->issue);
      for (const auto& [path, file] : task->repository) texts.push_back("/testbed/" + path + "\n" + file.content);
      for (const SweCall& call : task->repair.empty() ? std::vector<SweCall>{} : demonstrated_calls(*task))
        texts.push_back(swe_call_text(call));
    }
    return texts;
  }

  std::vector<std::string> tokenizer_added_tokens() const override {
    return {"<function=", "</function>", "<parameter=", "</parameter>"};
  }

 private:
  Status check_limits() const {
    const double longest = std::max(options_.limits.command_seconds, options_.limits.test_seconds) + kSecondsAround;
    if (options_.sandbox.seconds < longest)
      return Error{
          "env.sandbox.seconds: a call has to be allowed ten seconds more than env.command_seconds and "
          "env.test_seconds: expected at least " +
          std::to_string(static_cast<long long>(longest))};
    if (options_.sandbox.output_kb < kAnswerKilobytes)
      return Error{"env.sandbox.output_kb: the files that a command changes come back this way; expected at least " +
                   std::to_string(kAnswerKilobytes)};
    return Done{};
  }

  Result<std::vector<SweTask>> read_tasks() const {
    if (options_.task_source.empty()) return built_in_swe_tasks();
    if (std::filesystem::is_directory(options_.task_source)) return read_swe_tasks(options_.task_source);
    return read_swe_bench(options_.task_source, options_.repositories);
  }

  /// The validation tasks are spread evenly over what is sorted by difficulty.
  Status split(std::vector<SweTask> tasks) {
    std::erase_if(tasks, [&](const SweTask& task) {
      return task.difficulty > options_.max_difficulty || (!options_.task.empty() && task.id != options_.task);
    });
    if (tasks.empty())
      return Error{options_.task.empty() ? "env.task_source: there are no tasks"
                                         : "env.task: there is no task '" + options_.task + "'"};
    const auto every = static_cast<std::size_t>(options_.validation_every);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const auto task = std::make_shared<const SweTask>(std::move(tasks[i]));
      const bool is_held_out = every > 0 && tasks.size() > 1 && i % every == std::min(every, tasks.size()) - 1;
      if (!is_held_out) train_.push_back(task);
      if (is_held_out || every == 0 || tasks.size() == 1) held_out_.push_back(task);
    }
    return train_.empty() ? Status(Error{"env.validation_every: leaves no task for training"}) : Status(Done{});
  }

  SweOptions options_;
  std::shared_ptr<const SweWorkshop> workshop_{};
  SweTasks train_{}, held_out_{};
  std::unique_ptr<EpochOrder> order_{};
};

}  // namespace

Result<std::vector<SweTask>> built_in_swe_tasks() {
  std::vector<SweTask> tasks;
  for (const auto& [name, text] : kSweTaskTexts) {
    CARNOT_ASSIGN_OR_RETURN(auto task, parse_swe_task(text, std::string(name)));
    tasks.push_back(std::move(task));
  }
  sort_tasks(tasks);
  return tasks;
}

Result<std::vector<SweTask>> read_swe_tasks(const std::string& folder) {
  std::vector<SweTask> tasks;
  std::vector<std::string> problems;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem)) {
    if (entry.path().extension() != ".task") continue;
    const auto text = read_file(entry.path());
    auto task = text ? parse_swe_task(*text, entry.path().stem().string()) : Result<SweTask>(text.error());
    if (task)
      tasks.push_back(std::move(task).value());
    else
      problems.push_back(task.error().message);
  }
  if (problem) return Error{folder + ": " + problem.message()};
  if (!problems.empty()) return join_errors(problems);
  if (tasks.empty()) return Error{folder + ": has no file NAME.task"};
  sort_tasks(tasks);
  return tasks;
}

Result<std::vector<SweTask>> read_swe_bench(const std::string& file, const std::string& repositories) {
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_maybe_compressed(file));
  CARNOT_ASSIGN_OR_RETURN(const auto rows, parse_swe_bench_rows(text, file));
  if (repositories.empty())
    return Error{file + ": env.repositories has to name the folder of their repositories (docs/swe.md)"};
  std::vector<SweTask> tasks;
  std::vector<std::string> problems;
  for (const SweBenchRow& row : rows) {
    auto files = read_repository(std::filesystem::path(repositories) / row.instance_id);
    auto task = files ? swe_bench_task(row, std::move(files).value()) : Result<SweTask>(files.error());
    if (task)
      tasks.push_back(std::move(task).value());
    else if (problems.size() < kMaxProblems)
      problems.push_back(task.error().message);
  }
  if (!problems.empty()) return join_errors(problems);
  return tasks;
}

std::unique_ptr<EnvironmentFactory> make_swe() { return std::make_unique<SweFactory>(); }

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
