// rollout/rollout_context.h -- what all groups of one rollout share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "carnot/core/env/environment_workers.h"
#include "carnot/core/rollout/episode.h"
#include "carnot/core/rollout/rollout.h"

namespace carnot {

/// Whom an event belongs to. Member -1: the group itself.
struct Owner {
  int group = -1;
  int member = -1;

  std::int64_t tag() const { return (static_cast<std::int64_t>(group) << 32) + member + 1; }
  static Owner of(std::int64_t tag) { return {static_cast<int>(tag >> 32), static_cast<int>(tag & 0xffffffff) - 1}; }
};

struct RolloutContext {
  Engine& engine;
  const ChatFamily& chat;
  const BranchPolicy& policy;
  const RolloutOptions& options;
  const RolloutKey& key;
  EnvironmentWorkers& workers;
  EnvironmentWorkers& copier;  ///< for copies of environments, which the caller waits for
  const RolloutEvents& events;
  int policy_version = 0;       ///< of the current weights
  bool stopped = false;         ///< events.go_on() returned false
  std::vector<Owner> owners{};  ///< by SequenceId, of those that sample or score
  std::int64_t branches = 0;

  /// Asks events.go_on(), unless it has returned false before.
  bool may_continue() {
    stopped = stopped || !events.go_on();
    return !stopped;
  }

  void claim(SequenceId sequence, Owner owner) {
    if (owners.size() <= static_cast<std::size_t>(sequence)) owners.resize(static_cast<std::size_t>(sequence) + 1);
    owners[sequence] = owner;
  }
};

/// Copies of a running environment, for the branches of one group. A copy is awaited: a branch starts at once or not at
/// all.
class EnvironmentCopies {
 public:
  /// Both must outlive it.
  EnvironmentCopies(RolloutContext& context, const RolloutTask& task) : context_(context), task_(task) {}

  /// Waits for a copy of the episode's environment, until its deadline or until the rollout stops. `copy` is set if the
  /// call returned. After one copy has timed out, all further ones are refused.
  FinishedCall copy(const Episode& episode, std::shared_ptr<Environment>& copy);

 private:
  RolloutContext& context_;
  const RolloutTask& task_;
  std::string hangs_{};  ///< the message of a copy that timed out
};

}  // namespace carnot
