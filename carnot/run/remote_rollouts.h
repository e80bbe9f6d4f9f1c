// run/remote_rollouts.h -- a training run's rollouts by workers (rollout.plane): what they need is served, the steps'
// groups are handed out as tasks, and what comes back is put together as one rollout.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "carnot/base/result.h"
#include "carnot/plane/task_board.h"
#include "carnot/train/model_bundle.h"
#include "carnot/train/recipe.h"
#include "carnot/train/trainer.h"

namespace carnot {

/// What can be refused before anything is loaded: an address or a key that cannot be, a broker that refuses.
Status check_plane(const Recipe& recipe);

class RemoteRollouts {
 public:
  /// Meets the broker and announces the run; waits for the broker where it is away. Null where `go_on` ended that. The
  /// weights of a step are written into `folder` for a moment. Recipe and bundle must outlive it.
  static Result<std::unique_ptr<RemoteRollouts>> open(Recipe& recipe, ModelBundle& bundle, std::filesystem::path folder,
                                                      const GoOn& go_on);

  /// A RolloutsElsewhere: the same groups as roll_out() makes, in the same order. It waits for workers as long as
  /// `events` let it. Stopped where they do not, and where it failed.
  Rollout roll_out(const StepTasks& tasks, const RolloutEvents& events);

  /// Why it cannot go on; none where it can.
  const std::optional<Error>& failure() const { return failure_; }

 private:
  RemoteRollouts(Recipe& recipe, ModelBundle& bundle, std::filesystem::path folder, std::unique_ptr<TaskBoard> board);

  Status serve_setup();
  Result<PlaneFile> serve_tensors(const std::vector<NamedTensor>& tensors);
  /// Announces the policy's weights, unless they are those of `version` already.
  Result<bool> announce_weights(std::int64_t version, const GoOn& go_on);
  Result<Rollout> collect(const StepTasks& tasks, const RolloutEvents& events);

  Recipe& recipe_;
  ModelBundle& bundle_;
  std::filesystem::path folder_;
  std::unique_ptr<TaskBoard> board_;
  std::optional<Error> failure_{};
};

}  // namespace carnot
