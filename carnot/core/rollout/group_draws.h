// rollout/group_draws.h -- the keys of a group's random draws: the same whatever the order of events.
#pragma once

#include <string_view>

#include "carnot/core/base/random.h"
#include "carnot/core/rollout/rollout.h"

namespace carnot {

class GroupDraws {
 public:
  /// `group`: its number among the tasks of the rollout.
  GroupDraws(const RolloutKey& key, int group) : key_(key), group_(group) {}

  /// `purpose`: empty for tokens; every other purpose draws from its own stream.
  DrawKey key(std::string_view purpose, int sibling, int turn, int position) const;

 private:
  RolloutKey key_;
  int group_;
};

}  // namespace carnot
