// method/base.h -- shared by the base methods.
#pragma once

#include "carnot/core/credit/group_relative.h"
#include "carnot/core/credit/reward.h"
#include "carnot/core/method/method.h"

namespace carnot {

/// Sets up independent rollouts and the rewards' shaping. Credit follows.
void start_base(Method& method, const RewardOptions& reward);

/// Options shared by methods built on GRPO: the group comparison and the rewards' shaping.
struct GroupBaseOptions {
  GroupRelativeOptions group{};
  RewardOptions reward{};

  void fields(FieldVisitor& visit);
  UnreadKeys unread_keys() const;
};

/// start_base() and GRPO's credit.
void start_group_base(Method& method, const GroupBaseOptions& base);

/// The same if no base precedes the method, which then also sets its own objective; otherwise returns false and changes
/// nothing.
bool bring_group_base(Method& method, const GroupBaseOptions& base);

/// The loss as GRPO's paper writes it: the mean over trajectories of their token means, without a dual clip.
void mean_over_sequences(ObjectiveOptions& objective);

/// What a group of one gets: its own reward in the published programs, else 0.
inline Singleton singleton_of(Preset preset) { return preset == Preset::Code ? Singleton::Raw : Singleton::Zero; }

/// What counts in a group's statistics: turns in verl-agent, else trajectories.
inline Statistics statistics_of(Preset preset) {
  return preset == Preset::Code ? Statistics::Rows : Statistics::Trajectories;
}

}  // namespace carnot
