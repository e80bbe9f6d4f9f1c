// method/base.h -- what base methods have in common.
#pragma once

#include "carnot/credit/group_relative.h"
#include "carnot/credit/reward.h"
#include "carnot/method/method.h"

namespace carnot {

/// Independent rollouts and the rewards' shaping. Credit follows.
void start_base(Method& method, const RewardOptions& reward);

/// The parts of GRPO: what is compared in a group, and the rewards' shaping.
struct GroupBaseOptions {
  GroupRelativeOptions group{};
  RewardOptions reward{};

  void fields(FieldVisitor& visit);
  UnreadKeys unread_keys() const;
};

/// start_base() and GRPO's credit.
void start_group_base(Method& method, const GroupBaseOptions& base);

/// The same where no base precedes the method, which then also sets its own objective; else false, and nothing changes.
bool bring_group_base(Method& method, const GroupBaseOptions& base);

/// The loss as GRPO's paper writes it: the mean over trajectories of their token means, without a dual clip.
void mean_over_sequences(ObjectiveOptions& objective);

/// What a group of one gets: its own reward in the published programs, else nothing.
inline Singleton singleton_of(Preset preset) { return preset == Preset::Code ? Singleton::Raw : Singleton::Zero; }

/// What counts in a group's statistics: the turns in verl-agent, else the trajectories.
inline Statistics statistics_of(Preset preset) {
  return preset == Preset::Code ? Statistics::Rows : Statistics::Trajectories;
}

}  // namespace carnot
