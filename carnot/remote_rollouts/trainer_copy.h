// remote_rollouts/trainer_copy.h -- what a worker has of a trainer: recipe, environment, chat format, and the policy as
// announced.
#pragma once

#include <memory>
#include <string>

#include "carnot/core/base/result.h"
#include "carnot/core/rollout/rollout.h"
#include "carnot/core/train/model_bundle.h"
#include "carnot/core/train/recipe.h"
#include "carnot/remote_rollouts/transport/task_source.h"

namespace carnot {

class TrainerCopy {
 public:
  /// Fetches the trainer's settings and makes everything but the weights' values. Null if that may succeed another
  /// time (`why_not` says why); an error where this machine has other kernels and the recipe does not take them.
  /// `threads`: of the kernels; negative: as the recipe says.
  static Result<std::unique_ptr<TrainerCopy>> make(TaskSource& source, const Announcement& trainer, int threads,
                                                   const GoOn& go_on, std::string& why_not);

  const std::string& run() const { return run_; }
  /// Of the policy's weights; -1 before the first.
  std::int64_t version() const { return version_; }
  const Recipe& recipe() const { return recipe_; }
  /// Of this machine.
  const std::string& kernels() const { return kernels_; }

  /// Fetches the announced weights, unless they are here, and puts them in place. REQUIRES: no engine step is under
  /// way.
  Result<WorkerAttempt> take_weights(TaskSource& source, const Announcement& trainer, const GoOn& go_on);

  /// Whether these weights will do for the task: in asynchronous mode those that it names and all later ones.
  bool can_roll_out(const WorkerTask& task) const;
  Rollout roll_out(const WorkerTask& task, const RolloutEvents& events);

 private:
  TrainerCopy(std::string run, Recipe recipe) : run_(std::move(run)), recipe_(std::move(recipe)) {}

  Status open(const WorkerSetup& setup, int threads);
  Result<WorkerAttempt> add_weights(TaskSource& source, const Announcement& trainer, const std::string& kind,
                                    const WorkerFile& file, const std::vector<NamedTensor>& into, const GoOn& go_on);

  std::string run_;
  Recipe recipe_;
  std::string kernels_{};
  LoraOptions lora_{};
  ModelBundle bundle_{};
  Generation generation_{};
  std::string weights_{};  ///< SHA-256
  std::int64_t version_ = -1;
};

}  // namespace carnot
