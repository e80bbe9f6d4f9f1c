#include "carnot/core/credit/group_estimator.h"

#include "carnot/core/credit/other_baselines.h"

namespace carnot {

void GroupEstimatorOptions::fields(FieldVisitor& visit) {
  enum_field(visit, "estimator", estimator, {"group_relative", "length_weighted", "nonzero_scaled", "best_of_group"},
             "how a trajectory is compared with its group: GRPO, OPO, GPG, or GRPO for pass@k");
  group.fields(visit);
}

UnreadKeys GroupEstimatorOptions::unread_keys() const {
  constexpr std::string_view kWhy = "grpo.estimator has no such choice";
  UnreadKeys unread;
  if (estimator != GroupEstimator::GroupRelative)
    unread.add({"deviation", "variance_epsilon", "variance_floor", "statistics"}, kWhy);
  if (estimator == GroupEstimator::BestOfGroup) unread.add({"singleton"}, kWhy);
  if (estimator == GroupEstimator::LengthWeighted || estimator == GroupEstimator::NonzeroScaled)
    unread.add({"divide_by_std", "epsilon"}, kWhy);
  unread.add(group.unread_keys());
  return unread;
}

CreditRule group_estimator(const GroupEstimatorOptions& options) {
  const Normalisation& normalisation = options.group.normalisation;
  switch (options.estimator) {
    case GroupEstimator::LengthWeighted: return length_weighted_baseline(normalisation.singleton);
    case GroupEstimator::NonzeroScaled: return nonzero_scaled(normalisation.singleton);
    case GroupEstimator::BestOfGroup:
      return best_of_group({.divide_by_std = normalisation.divide_by_std, .epsilon = normalisation.epsilon});
    case GroupEstimator::GroupRelative: break;
  }
  return group_relative(options.group);
}

}  // namespace carnot
