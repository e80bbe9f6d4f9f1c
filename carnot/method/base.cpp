#include "carnot/method/base.h"

namespace carnot {

void start_base(Method& method, const RewardOptions& reward) {
  method.branch = independent();
  method.signals.insert(Signal::LogProbOld);
  for (CreditRule& rule : reward_rules(reward)) method.credit.push_back(std::move(rule));
}

void start_group_base(Method& method, const RewardOptions& reward, const GroupRelativeOptions& group) {
  start_base(method, reward);
  method.credit.push_back(group_relative(group));
}

void mean_over_sequences(ObjectiveOptions& objective) {
  objective.reduction = Reduction::SequenceMeanTokenMean;
  objective.dual_clip = 0;
}

void reward_section(FieldVisitor& visit, RewardOptions& reward) {
  section(visit, "reward", reward, "shaping of rewards before any credit");
}

}  // namespace carnot
