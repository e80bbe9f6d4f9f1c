// Killed or failed at a system call, then started again: a command ends with the uninterrupted run's files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "cases.h"
#include "fault.h"
#include "small_run.h"
#include "trace.h"

namespace carnot::testing {
namespace {

namespace fs = std::filesystem;

/// A command, what it starts from, and the command that completes what was left undone.
struct Scenario {
  std::vector<std::string> command{};
  std::vector<std::string> again{};    ///< empty: the same
  fs::path start{};                    ///< what the world holds before; empty: nothing
  bool may_leave_temporaries = false;  ///< a kill leaves a half-written file next to the output, which is not removed
};

void remove_temporaries_beside(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with(".carnot-") && entry.path().extension() == ".tmp")
      fs::remove_all(entry.path());
}

class SystemCalls : public ::testing::Test {
 protected:
  /// The uninterrupted run of the scenario: its files and its calls.
  void record(Scenario scenario) {
    scenario_ = std::move(scenario);
    if (scenario_.again.empty()) scenario_.again = scenario_.command;
    run_.reset(scenario_.start);
    const fs::path trace = run_.next_to("trace");
    fs::remove(trace);
    const ProgramRun run = run_interposed(scenario_.command, {.folder = run_.world(), .trace = trace});
    ASSERT_EQ(run.exit, 0) << run.err;
    straight_ = content_of(run_.world());
    calls_ = read_trace(trace);
    ASSERT_FALSE(calls_.empty());
  }

  ProgramRun run_with(const Fault& fault) {
    run_.reset(scenario_.start);
    return run_interposed(scenario_.command, {.folder = run_.world(), .fault = fault});
  }

  void expect_put_right() {
    const ProgramRun again = run_carnot(scenario_.again, {.deadline = kHang});
    EXPECT_EQ(again.exit, 0) << again.err;
    if (scenario_.may_leave_temporaries) remove_temporaries_beside(run_.world());
    EXPECT_EQ(difference(straight_, content_of(run_.world())), "");
  }

  void killed(const Fault& fault) {
    const ProgramRun run = run_with(fault);
    EXPECT_EQ(run.signal, SIGKILL) << "exit " << run.exit << ": " << run.err;
    expect_put_right();
  }

  void failed(const Fault& fault) {
    const ProgramRun run = run_with(fault);
    EXPECT_EQ(indecent_end(run), "");
    if (run.exit != 0) return expect_put_right();
    EXPECT_EQ(difference(straight_, content_of(run_.world())), "") << "exit 0: " << run.err;
  }

  /// A case for every call that `concerned` names.
  template <class Concerned, class Check>
  std::vector<Case> cases(const Concerned& concerned, const Check& check) {
    std::vector<Case> all;
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if (concerned(calls_[i]))
        all.push_back({.name = std::to_string(i + 1) + " " + text_of(calls_[i], run_.world()),
                       .check = [this, i, check] { check(calls_[i], static_cast<long>(i + 1)); }});
    return all;
  }

  void try_kills() {
    run_cases(cases(changes_disk, [this](const TracedCall&, long call) { killed({FaultKind::Kill, call}); }));
  }
  void try_kills_midway() {
    run_cases(cases([](const TracedCall& call) { return call.name == "write" && call.data.size() > 1; },
                    [this](const TracedCall&, long call) { killed({FaultKind::KillMidway, call}); }));
  }
  void try_short_writes() {
    run_cases(cases([](const TracedCall& call) { return call.name == "write" && call.data.size() > 1; },
                    [this](const TracedCall&, long call) { failed({FaultKind::ShortWrite, call}); }));
  }
  void try_errors() {
    run_cases(
        cases([](const TracedCall&) { return true; },
              [this](const TracedCall& made, long call) { failed({FaultKind::Error, call, error_of(made, call)}); }));
  }
  void try_full_disks() {
    run_cases(cases(takes_space, [this](const TracedCall&, long call) {
      failed({FaultKind::DiskFull, call, call % 2 == 0 ? EDQUOT : ENOSPC});
    }));
  }

  /// The errors with which the call may fail; calls that take space alternate between them.
  static int error_of(const TracedCall& made, long call) {
    if (takes_space(made)) return std::array{ENOSPC, EIO, EDQUOT}[static_cast<std::size_t>(call) % 3];
    return made.name == "open" || made.name == "look" ? (call % 2 == 0 ? EMFILE : EIO) : EIO;
  }

  /// A copy of what the world holds, to start from.
  fs::path keep_as(const std::string& name) {
    const fs::path kept = run_.next_to(name);
    fs::copy(run_.world(), kept, fs::copy_options::recursive);
    return kept;
  }

  void record_training() { record({.command = run_.command()}); }

  /// Starts from a run that was killed once its first checkpoint of training was announced.
  void record_resumption() {
    record_training();
    const std::string pointer = (run_.folder() / "checkpoints/latest_checkpointed_iteration.txt").string();
    const auto announced = std::find_if(calls_.begin(), calls_.end(), [&](const TracedCall& call) {
      return call.name == "rename" && call.second == pointer;
    });
    ASSERT_NE(announced, calls_.end());
    const long next = announced - calls_.begin() + 2;  // calls count from 1
    const ProgramRun killed = run_with({FaultKind::Kill, next});
    ASSERT_EQ(killed.signal, SIGKILL);
    const FolderContent straight = straight_;
    record({.command = run_.command(), .start = keep_as("killed")});
    EXPECT_EQ(difference(straight, straight_), "");
  }

  void record_export() {
    record_training();
    const std::string model = (run_.world() / "model").string();
    const std::vector<std::string> command{"export", run_.folder().string(), "--output", model};
    std::vector<std::string> again = command;
    again.push_back("--overwrite");
    record({.command = command, .again = again, .start = keep_as("trained"), .may_leave_temporaries = true});
  }

  /// An export over an earlier one with other content.
  void record_export_over() {
    record_training();
    const fs::path model = run_.world() / "model";
    std::vector<std::string> command{"export", run_.folder().string(), "--output", model.string(), "--overwrite"};
    std::vector<std::string> earlier = command;
    earlier.insert(earlier.end(), {"--dtype", "bfloat16"});
    ASSERT_EQ(run_carnot(earlier).exit, 0);
    record({.command = command, .start = keep_as("exported"), .may_leave_temporaries = true});
  }

  void record_credit() {
    record_training();
    const std::string rows = (run_.folder() / "rollouts/step_1.jsonl").string();
    record({.command = {"credit", rows, "--method", "rloo", "--output", (run_.world() / "credit.jsonl").string()},
            .start = keep_as("trained"),
            .may_leave_temporaries = true});
  }

  void record_comparison() {
    record({.command = {"compare", run_.recipe(), "--methods", "grpo", "--seeds", "0", "--output",
                        (run_.world() / "comparison").string(), "train.steps=1", "eval.every=0"}});
  }

  SmallRun run_;
  Scenario scenario_;
  FolderContent straight_;
  std::vector<TracedCall> calls_;
};

TEST_F(SystemCalls, TheUninterruptedRunWritesEveryKindOfFile) {
  record_training();
  for (const char* file : {"run/config.yaml", "run/metrics.jsonl", "run/summary.json", "run/rollouts/step_2.jsonl",
                           "run/validation/before.json", "run/validation/after.jsonl",
                           "run/checkpoints/global_step_2/critic_optimizer.safetensors",
                           "run/warm_start/checkpoints/global_step_1/model.safetensors"})
    EXPECT_TRUE(straight_.contains(file)) << file;
  EXPECT_FALSE(straight_.contains("run/checkpoints/global_step_1/"));
  EXPECT_GT(calls_.size(), 200u);
}

TEST_F(SystemCalls, AKilledRunContinuesToTheUninterruptedRunsFiles) {
  record_training();
  try_kills();
}

TEST_F(SystemCalls, ARunKilledInTheMiddleOfAWriteContinuesToTheUninterruptedRunsFiles) {
  record_training();
  try_kills_midway();
}

TEST_F(SystemCalls, ARunWhoseWritesAreCutShortLosesNothing) {
  record_training();
  try_short_writes();
}

TEST_F(SystemCalls, ARunWithAnErrorEndsWithAMessageAndThenContinuesToTheUninterruptedRunsFiles) {
  record_training();
  try_errors();
}

TEST_F(SystemCalls, ARunOnAFullDiskEndsWithAMessageAndThenContinuesToTheUninterruptedRunsFiles) {
  record_training();
  try_full_disks();
}

TEST_F(SystemCalls, AKilledResumptionContinuesToTheUninterruptedRunsFiles) {
  record_resumption();
  try_kills();
}

TEST_F(SystemCalls, AResumptionWithAnErrorContinuesToTheUninterruptedRunsFiles) {
  record_resumption();
  try_errors();
}

TEST_F(SystemCalls, AKilledExportKeepsItsSourceAndCanBeRepeated) {
  record_export();
  try_kills();
}

TEST_F(SystemCalls, AnExportWithAnErrorKeepsItsSourceAndCanBeRepeated) {
  record_export();
  try_errors();
}

TEST_F(SystemCalls, AnExportOverAnEarlierOneIsKilledAndRepeated) {
  record_export_over();
  try_kills();
}

TEST_F(SystemCalls, AKilledCreditFileIsWrittenByTheSameCommand) {
  record_credit();
  try_kills();
}

TEST_F(SystemCalls, ACreditFileWithAnErrorIsWrittenByTheSameCommand) {
  record_credit();
  try_errors();
}

TEST_F(SystemCalls, AKilledComparisonContinuesToTheUninterruptedComparisonsFiles) {
  record_comparison();
  try_kills();
}

TEST_F(SystemCalls, AComparisonWithAnErrorContinuesToTheUninterruptedComparisonsFiles) {
  record_comparison();
  try_errors();
}

}  // namespace
}  // namespace carnot::testing
