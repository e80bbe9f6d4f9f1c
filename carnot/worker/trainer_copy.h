// worker/trainer_copy.h -- what a worker has of a trainer: recipe, environment, chat format, and the policy as
// announced.
#pragma once

#include <memory>
#include <string>

#include "carnot/base/result.h"
#include "carnot/plane/task_source.h"
#include "carnot/rollout/rollout.h"
#include "carnot/train/model_bundle.h"
#include "carnot/train/recipe.h"

namespace carnot {

class TrainerCopy {
 public:
  /// Fetches the trainer's settings and makes everything but the weights' values. Null where that may succeed another
  /// time (`why_not` says why); an error where this machine has other kernels. `threads`: of the kernels; negative: as
  /// the recipe says.
  static Result<std::unique_ptr<TrainerCopy>> make(TaskSource& source, const Announcement& trainer, int threads,
                                                   const GoOn& go_on, std::string& why_not);

  const std::string& run() const { return run_; }
  /// SHA-256 of the policy's weights; empty before the first.
  const std::string& weights() const { return weights_; }
  const Recipe& recipe() const { return recipe_; }

  /// Fetches the announced weights and puts them in place. REQUIRES: nothing is being rolled out.
  Result<PlaneAttempt> take_weights(TaskSource& source, const Announcement& trainer, const GoOn& go_on);

  Rollout roll_out(const PlaneTask& task, const RolloutEvents& events);

 private:
  TrainerCopy(std::string run, Recipe recipe) : run_(std::move(run)), recipe_(std::move(recipe)) {}

  Status open(const WorkerSetup& setup, int threads);
  Result<PlaneAttempt> add_weights(TaskSource& source, const Announcement& trainer, const PlaneFile& file,
                                   const std::vector<NamedTensor>& into, const GoOn& go_on);

  std::string run_;
  Recipe recipe_;
  LoraOptions lora_{};
  ModelBundle bundle_{};
  Generation generation_{};
  std::string weights_{};
};

}  // namespace carnot
