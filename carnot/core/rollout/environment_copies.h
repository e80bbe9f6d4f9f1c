// rollout/environment_copies.h -- copies of a running environment, for the branches of one group. A copy is awaited:
// a branch starts at once or not at all.
#pragma once

#include <memory>
#include <string>

#include "carnot/core/rollout/episode.h"
#include "carnot/core/rollout/rollout_context.h"

namespace carnot {

class EnvironmentCopies {
 public:
  /// Both must outlive it.
  EnvironmentCopies(RolloutContext& context, const RolloutTask& task) : context_(context), task_(task) {}

  /// Waits for a copy of the episode's environment, for its deadline, or until the rollout is to stop. `copy` is set
  /// where the call returned. Once a copy has not come back in time, every further one is refused.
  FinishedCall copy(const Episode& episode, std::shared_ptr<Environment>& copy);

 private:
  RolloutContext& context_;
  const RolloutTask& task_;
  std::string hangs_{};  ///< the message of a copy that did not come back
};

}  // namespace carnot
