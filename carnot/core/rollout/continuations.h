// rollout/continuations.h -- values of states by tree rollouts: the policy continues from inside recorded trajectories.
//
// A state is the beginning of a trajectory: whole responses, and perhaps the first tokens of one more. Its
// continuations are sampled from there with the policy, each with an environment of its own that has been given the
// same responses, and then makes new random draws (Environment::redraw).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/data/trajectory.h"
#include "carnot/core/rollout/rollout.h"

namespace carnot {

/// The state before turn `turn`'s response, or after the first `begun` of its tokens. REQUIRES: the turns before it
/// have sampled tokens; `begun` is less than those of its own.
GivenStart start_of(const Trajectory& trajectory, int turn, int begun = 0);

/// The policy's scores from one state.
struct Continuations {
  /// By continuation: the whole trajectory's score with penalties (penalised_score()), the turns that were given
  /// included; none where the infrastructure failed.
  std::vector<std::optional<double>> scores{};
  std::int64_t sampled_tokens = 0;  ///< after the state
};

struct ContinuedStates {
  bool stopped = false;  ///< events.go_on() said no: there are no states
  std::vector<Continuations> states{};
  RolloutMetrics metrics{};
  std::vector<std::string> failures{};
};

/// `options.group_size` continuations of each state, a task with RolloutTask::given.
ContinuedStates continue_from(Engine& engine, const ChatFamily& chat, std::span<const RolloutTask> states,
                              const RolloutOptions& options, const RolloutKey& key, const RolloutEvents& events = {});

}  // namespace carnot
