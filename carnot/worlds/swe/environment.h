// worlds/swe/environment.h -- repairs of repositories in R2E-Gym's protocol: one growing conversation, a tool call a
// turn.
//
// A response holds a call (scaffold.h); its observation is the next user message. `finish`, or the last step, ends the
// episode: the tests are put back and run, and the reward is 1 if all that have to pass do, else 0 (test_log.h).
#pragma once

#include <map>
#include <memory>
#include <string>

#include "carnot/core/env/environment.h"
#include "carnot/worlds/swe/task.h"
#include "carnot/worlds/swe/workshop.h"

namespace carnot {

struct SweLimits {
  int max_steps = 50;
  double command_seconds = 90;
  double test_seconds = 300;
  int max_response_tokens = 4096;
  int max_observation = 30'000;  ///< characters
  double reward = 1;
};

struct SweGrade {
  bool success = false;
  double tests_passed = 0;  ///< share of those that have to pass
};

/// The folder as the tests see it: those of the task are put back, and so are the files that tell pytest and the
/// interpreter what to do.
SweFolder folder_for_tests(const SweTask& task, const SweFolder& folder);

/// Runs the tests. A repository that is as it was is not repaired, and nothing runs. Throws SandboxFailure.
SweGrade grade(const SweTask& task, const SweFolder& folder, const SweWorkshop& workshop, double seconds);

class SweEnvironment final : public Environment {
 public:
  SweEnvironment(std::shared_ptr<const SweTask> task, std::shared_ptr<const SweWorkshop> workshop,
                 const SweLimits& limits);

  Protocol protocol() const override;
  Opening open() override;

  /// Measures at the end: "resolved", "tests_passed", "steps", "changed" (anything in the repository).
  Reply step(const PolicyResponse& response) override;

  std::string anchor() const override;
  std::map<std::string, std::string> info() const override;
  Branching branching() const override { return Branching::Cloned; }
  std::unique_ptr<Environment> clone() const override { return std::make_unique<SweEnvironment>(*this); }

  const SweTask& task() const { return *task_; }
  const SweFolder& folder() const { return folder_; }

 private:
  void end(Reply& reply, bool finished);

  std::shared_ptr<const SweTask> task_;
  std::shared_ptr<const SweWorkshop> workshop_;
  SweLimits limits_;
  SweFolder folder_;
  int steps_ = 0;
  bool done_ = false;
};

/// The repository's files as they are in an episode's folder.
SweFiles repository_in(const SweFolder& folder);

}  // namespace carnot
