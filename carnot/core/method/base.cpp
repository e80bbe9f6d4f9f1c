#include "carnot/core/method/base.h"

#include "carnot/core/branch/branch.h"

namespace carnot {

void start_base(Method& method, const RewardOptions& reward) {
  method.branch = independent();
  for (CreditRule& rule : reward_rules(reward)) method.credit.push_back(std::move(rule));
}

void GroupBaseOptions::fields(FieldVisitor& visit) {
  group.fields(visit);
  reward_section(visit, reward);
}

UnreadKeys GroupBaseOptions::unread_keys() const {
  UnreadKeys unread = group.unread_keys();
  unread.add(reward.unread_keys(RewardsRead::Totals), "reward");
  return unread;
}

void start_group_base(Method& method, const GroupBaseOptions& base) {
  start_base(method, base.reward);
  method.credit.push_back(group_relative(base.group));
}

bool bring_group_base(Method& method, const GroupBaseOptions& base) {
  if (has_base(method)) return false;
  start_group_base(method, base);
  return true;
}

void mean_over_sequences(ObjectiveOptions& objective) {
  objective.reduction = Reduction::SequenceMeanTokenMean;
  objective.dual_clip = 0;
}

}  // namespace carnot
